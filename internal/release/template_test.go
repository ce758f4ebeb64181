package release_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/slipwayhq/slipway/config/classes"
	"github.com/slipwayhq/slipway/internal/release"
)

const folder = "../../examples"

func decode(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		u := &unstructured.Unstructured{}
		if err := d.Decode(u); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		out = append(out, u)
	}
}

// CC2-01, CC2-11: with the values of the example in the place of its variables, a template is the example, in a namespace. One with a
// class leaves the class to a file of its own (CC2-12).
func TestTemplatesAreTheExamples(t *testing.T) {
	cases := map[string]struct{ file, name, workers, class string }{
		"":          {"machinedeployment.yaml", "workers", "2", ""},
		"pool":      {"without-class.yaml", "quickstart", "2", ""},
		"class":     {"quickstart.yaml", "quickstart", "2", classes.Local},
		"kubeadm":   {"kubeadm.yaml", "demo", "1", ""},
		"simulated": {"fleet.yaml", "fleet", "1", ""},
	}
	if len(release.Flavors()) != len(cases) {
		t.Errorf("%d flavors, want %d", len(release.Flavors()), len(cases))
	}
	for _, flavor := range release.Flavors() {
		tc := cases[flavor.Name]
		objects, err := flavor.Objects(os.DirFS(folder))
		if err != nil {
			t.Fatal(err)
		}
		text, err := release.ComponentsYAML(objects)
		if err != nil {
			t.Fatal(err)
		}
		filled := strings.NewReplacer("${CLUSTER_NAME}", tc.name, "${NAMESPACE}", "team", "${KUBERNETES_VERSION}", "v1.36.3",
			"${CONTROL_PLANE_MACHINE_COUNT}", "1", "${WORKER_MACHINE_COUNT}", tc.workers).Replace(string(release.WithDefaults(text)))
		if i := strings.Index(filled, "${"); i >= 0 {
			t.Errorf("flavor %q: a variable that is not known: %s", flavor.Name, filled[i:min(i+40, len(filled))])
		}
		example, err := os.ReadFile(folder + "/" + tc.file)
		if err != nil {
			t.Fatal(err)
		}
		class := map[string]bool{}
		if tc.class != "" {
			parts, _, err := classes.Objects(tc.class, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range parts {
				class[o.GetKind()+o.GetName()] = true
			}
		}
		want := slices.DeleteFunc(decode(t, string(bytes.TrimSpace(example))), func(o *unstructured.Unstructured) bool { return class[o.GetKind()+o.GetName()] })
		for _, o := range want {
			o.SetNamespace("team")
		}
		if diff := cmp.Diff(want, decode(t, filled)); diff != "" {
			t.Errorf("flavor %q (-example +template):\n%s", flavor.Name, diff)
		}
	}
}
