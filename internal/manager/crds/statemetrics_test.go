package crds

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// stateMetrics is what the configuration of kube-state-metrics has in common with the schemas of CRDs: kinds and paths.
type stateMetrics struct {
	Spec struct {
		Resources []struct {
			GroupVersionKind schema.GroupVersionKind `json:"groupVersionKind"`
			LabelsFromPath   map[string][]string     `json:"labelsFromPath"`
			Metrics          []struct {
				Name string `json:"name"`
				Each struct {
					Gauge    metricPaths `json:"gauge"`
					Info     metricPaths `json:"info"`
					StateSet metricPaths `json:"stateSet"`
				} `json:"each"`
			} `json:"metrics"`
		} `json:"resources"`
	} `json:"spec"`
}

// metricPaths are the fields that a metric reads.
type metricPaths struct {
	Path           []string            `json:"path"`
	LabelsFromPath map[string][]string `json:"labelsFromPath"`
	ValueFrom      []string            `json:"valueFrom"`
}

// TestStateMetrics: the configuration of kube-state-metrics that ships has metrics of each of our kinds that has a status, and each
// of its paths is in the schema of the kind.
func TestStateMetrics(t *testing.T) {
	text, err := os.ReadFile("../../../docs/kube-state-metrics.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config stateMetrics
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	kinds := all(t)
	measured := map[string]bool{}
	for _, r := range config.Spec.Resources {
		kind := r.GroupVersionKind.Kind
		crd := kinds[kind]
		if crd == nil || crd.Spec.Group != r.GroupVersionKind.Group || crd.Spec.Versions[0].Name != r.GroupVersionKind.Version {
			t.Errorf("there is no %s", r.GroupVersionKind)
			continue
		}
		measured[kind] = true
		root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, path := range r.LabelsFromPath {
			checkPath(t, kind, root, path)
		}
		for _, m := range r.Metrics {
			paths := 0
			for _, each := range []metricPaths{m.Each.Gauge, m.Each.Info, m.Each.StateSet} {
				at := checkPath(t, kind+" "+m.Name, root, each.Path)
				for _, path := range append(slices.Collect(maps.Values(each.LabelsFromPath)), each.ValueFrom) {
					checkPath(t, kind+" "+m.Name, at, path)
					paths += len(path)
				}
				paths += len(each.Path)
			}
			if paths == 0 {
				t.Errorf("%s %s reads nothing", kind, m.Name)
			}
		}
	}
	for kind, crd := range kinds {
		own := strings.HasSuffix(crd.Spec.Group, ".slipway.dev") && !strings.HasSuffix(kind, "Template")
		if own && !measured[kind] {
			t.Errorf("%s has no metrics in docs/kube-state-metrics.yaml", kind)
		}
	}
}

// checkPath follows a path into a schema, through the items of a list, and returns what it leads to.
func checkPath(t *testing.T, what string, at *apiextensionsv1.JSONSchemaProps, path []string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	if len(path) > 0 && path[0] == "metadata" {
		return nil
	}
	for _, name := range path {
		next, ok := at.Properties[name]
		if !ok {
			t.Errorf("%s: the schema has no %s", what, strings.Join(path, "."))
			return at
		}
		at = &next
		if at.Items != nil {
			at = at.Items.Schema
		}
	}
	return at
}
