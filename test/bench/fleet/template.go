package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/slipwayhq/slipway/test/bench/follow"
)

// template is a manifest of one cluster, to be made many times under other names.
type template struct {
	text       string
	cluster    types.NamespacedName
	deployment string
}

// parseTemplate finds the Cluster and the MachineDeployment of a manifest.
func parseTemplate(text string) (template, error) {
	t := template{text: text}
	objects, err := decode(text)
	if err != nil {
		return t, err
	}
	for _, o := range objects {
		switch o.GetKind() {
		case "Cluster":
			t.cluster = types.NamespacedName{Namespace: namespace(o), Name: o.GetName()}
		case "MachineDeployment":
			t.deployment = o.GetName()
			if n := follow.Integer(o, "spec", "replicas"); n != 1 {
				return t, fmt.Errorf("MachineDeployment %s has %d replicas, want 1", t.deployment, n)
			}
		}
	}
	if t.cluster.Name == "" || t.deployment == "" {
		return t, errors.New("the manifest needs a Cluster and a MachineDeployment")
	}
	return t, nil
}

// rename is a text with the name of the template's cluster replaced.
func (t template) rename(text string, n int) string {
	return strings.ReplaceAll(text, t.cluster.Name, clusterName(n))
}

// render is the manifest of the nth cluster.
func (t template) render(n int) ([]*unstructured.Unstructured, error) {
	return decode(t.rename(t.text, n))
}

func clusterName(n int) string { return fmt.Sprintf("c%04d", n) }

func namespace(o *unstructured.Unstructured) string {
	if ns := o.GetNamespace(); ns != "" {
		return ns
	}
	return "default"
}

func decode(text string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := documents.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifest: %w", err)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
}
