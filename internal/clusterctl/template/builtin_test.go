package template_test

import (
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/clusterctl/template"
)

// CX-05: every template of this build makes a manifest, with its class where it names one.
func TestBuiltinTemplates(t *testing.T) {
	s, err := template.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for flavor, want := range map[string]string{"": "kind: MachineDeployment", "pool": "kind: MachinePool", "class": "kind: ClusterClass", "simulated": "kind: Cluster"} {
		r := template.Release{Source: s, Version: template.BuiltinVersion(), Flavor: flavor}
		made, err := r.Template(t.Context(), nil, template.Options{
			Name: "demo", Namespace: "team", KubernetesVersion: "v1.36.3", Lookup: func(string) (string, bool) { return "", false },
		})
		if err != nil {
			t.Errorf("flavor %q: %v", flavor, err)
			continue
		}
		text, err := made.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) || !strings.Contains(string(text), "name: demo") || strings.Contains(string(text), "${") {
			t.Errorf("flavor %q:\n%s", flavor, text)
		}
	}
}
