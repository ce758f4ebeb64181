package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// subject is what a manifest makes: a cluster with one pool of nodes.
type subject struct {
	Namespace string
	Cluster   string
	Pool      string
	Replicas  int
}

// parseManifest finds the Cluster and the MachinePool of a manifest.
func parseManifest(data []byte) (subject, error) {
	s := subject{Namespace: "default"}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := documents.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s, fmt.Errorf("read the manifest: %w", err)
		}
		switch o.GetKind() {
		case "Cluster":
			s.Cluster = o.GetName()
			if ns := o.GetNamespace(); ns != "" {
				s.Namespace = ns
			}
		case "MachinePool":
			s.Pool = o.GetName()
			s.Replicas = integer(o, "spec", "replicas")
		}
	}
	if s.Cluster == "" || s.Pool == "" || s.Replicas < 1 {
		return s, errors.New("the manifest needs a Cluster and a MachinePool with at least one replica")
	}
	return s, nil
}

// integer is a number of an object that was read from JSON or YAML; 0 where there is none.
func integer(o *unstructured.Unstructured, path ...string) int {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	switch n := value.(type) {
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	return 0
}

// truth is a boolean of an object; false where there is none.
func truth(o *unstructured.Unstructured, path ...string) bool {
	value, _, _ := unstructured.NestedBool(o.Object, path...)
	return value
}

// holds reports whether a condition of an object is True.
func holds(o *unstructured.Unstructured, conditionType string) bool {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range all {
		if c, ok := one.(map[string]any); ok && c["type"] == conditionType {
			return c["status"] == "True"
		}
	}
	return false
}
