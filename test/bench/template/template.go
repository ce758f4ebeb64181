// Package template makes many clusters of one manifest.
//
// Does: finds the Cluster and its MachineDeployment in a manifest, also one that the Cluster's topology asks for, and replaces the
// Cluster's name wherever it stands; creates their objects. What has not the Cluster's name in its own, as a ClusterClass and its
// templates, is what all share.
//
// Owns: the names of the clusters.
//
// Never: reads from a cluster.
//
// Read first: [Read].
package template

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/follow"
)

// Template is a manifest of one cluster, to be made many times under other names.
type Template struct {
	Namespace string
	// OfClass is true where the Cluster has a topology.
	OfClass bool
	// OnMachines is true where the control plane of a class runs on Machines.
	OnMachines bool

	text, cluster, deployment string
}

// Read parses a file.
func Read(name string) (Template, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return Template{}, err
	}
	t, err := Parse(string(text))
	if err != nil {
		return t, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// Parse finds the Cluster and the MachineDeployment of a manifest.
func Parse(text string) (Template, error) {
	t := Template{text: text}
	objects, err := decode(text)
	if err != nil {
		return t, err
	}
	for _, o := range objects {
		switch o.GetKind() {
		case "Cluster":
			t.Namespace, t.cluster = o.GetNamespace(), o.GetName()
			if err := t.topology(o); err != nil {
				return t, err
			}
		case "KubeadmControlPlaneTemplate":
			t.OnMachines = true
		case "MachineDeployment":
			t.deployment = o.GetName()
			if n := follow.Integer(o, "spec", "replicas"); n != 1 {
				return t, fmt.Errorf("MachineDeployment %s has %d replicas, want 1", t.deployment, n)
			}
		}
	}
	if t.cluster == "" || t.deployment == "" {
		return t, errors.New("the manifest needs a Cluster and a MachineDeployment")
	}
	if t.Namespace == "" {
		t.Namespace = "default"
	}
	return t, nil
}

// topology finds the MachineDeployment that a topology asks for. Its class names it after the Cluster and its name in the topology.
func (t *Template) topology(cluster *unstructured.Unstructured) error {
	asked, _, err := unstructured.NestedSlice(cluster.Object, "spec", "topology", "workers", "machineDeployments")
	if err != nil || len(asked) == 0 {
		return err
	}
	d, _ := asked[0].(map[string]any)
	name, _, _ := unstructured.NestedString(d, "name")
	t.deployment, t.OfClass = t.cluster+"-"+name, true
	if n := follow.Integer(&unstructured.Unstructured{Object: d}, "replicas"); n != 1 {
		return fmt.Errorf("workers %s have %d replicas, want 1", name, n)
	}
	return nil
}

// rename is a text with the name of the template's cluster replaced.
func (t Template) rename(text string, n int) string {
	return strings.ReplaceAll(text, t.cluster, Cluster(n))
}

// Render is the manifest of the nth cluster, without what all share.
func (t Template) Render(n int) ([]*unstructured.Unstructured, error) {
	return t.objects(n, func(o *unstructured.Unstructured) bool { return strings.Contains(o.GetName(), Cluster(n)) })
}

// Shared is what all clusters share: a class and its templates.
func (t Template) Shared() ([]*unstructured.Unstructured, error) {
	return t.objects(0, func(o *unstructured.Unstructured) bool { return !strings.Contains(o.GetName(), Cluster(0)) })
}

// objects of the manifest of the nth cluster for which keep holds.
func (t Template) objects(n int, keep func(*unstructured.Unstructured) bool) ([]*unstructured.Unstructured, error) {
	all, err := decode(t.rename(t.text, n))
	var objects []*unstructured.Unstructured
	for _, o := range all {
		o.SetNamespace(t.Namespace)
		if keep(o) {
			objects = append(objects, o)
		}
	}
	return objects, err
}

// Create creates the objects of a cluster in order.
func Create(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if err := c.Create(ctx, o); err != nil {
			return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// Object has a kind and a name, and is where the clusters are; for writes that need no more.
func (t Template) Object(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(t.Namespace)
	o.SetName(name)
	return o
}

// Cluster is the name of the nth Cluster.
func Cluster(n int) string { return fmt.Sprintf("c%04d", n) }

// Deployment is the name of the nth cluster's MachineDeployment.
func (t Template) Deployment(n int) string { return t.rename(t.deployment, n) }

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
