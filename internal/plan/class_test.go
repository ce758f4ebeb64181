package plan

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/test/testkit"
)

// class is a class of simulated clusters with a variable and patches, and two Clusters of it.
func class(t *testing.T, pairs ...string) Change {
	t.Helper()
	data, err := os.ReadFile("testdata/class.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the manifest has no %q", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return Change{Apply: read(t, text)}
}

// What a class says is planned for each of its Clusters.
func TestRunClass(t *testing.T) {
	created, rest := run(t, snapshot(t, extension()), class(t))
	testkit.CompareGolden(t, "testdata/class-create.txt", "# a class and its Clusters\n"+text(created))
	cases := map[string]struct {
		reason string
		change Change
	}{
		"class nothing":        {"what is applied again changes nothing", class(t)},
		"class replicas":       {"one Cluster is touched", class(t, "name: a, replicas: 2", "name: a, replicas: 4")},
		"class variable":       {"a patch makes another template of it, which rotates", class(t, "value: 100ms", "value: 200ms")},
		"class metadata":       {"labels of the class are written in place, on all Clusters", class(t, "tier: worker", "tier: other")},
		"class version":        {"control plane, then workers, with the hooks between them", class(t, "version: v1.36.2", "version: v1.36.3")},
		"class rebase":         {"a Cluster moves to another class", class(t, "classRef: {name: simulated}", "classRef: {name: other}")},
		"class refused":        {"a value that the schema of the variable does not allow", class(t, "value: 100ms", "value: soon")},
		"class narrowed":       {"the Cluster has a value that is not allowed any more, and stands still: it is touched", class(t, `default: 100ms, pattern: "^[0-9]+ms$"`, `default: 100s, pattern: "^[0-9]+s$"`)},
		"class delete":         {"a class in use cannot be deleted", Change{Delete: class(t).Apply[:1]}},
		"class cluster delete": {"hooks are called before", Change{Delete: class(t).Apply[len(class(t).Apply)-2 : len(class(t).Apply)-1]}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, _ := run(t, rest, tc.change)
			testkit.CompareGolden(t, "testdata/"+strings.ReplaceAll(name, " ", "-")+".txt", "# "+tc.reason+"\n"+text(p))
		})
	}
}

// extension handles every lifecycle hook, as its discovery said.
func extension() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(runtimev1.GroupVersion.WithKind("ExtensionConfig"))
	u.SetName("guard")
	var handlers []any
	for _, hook := range []string{
		"BeforeClusterCreate", "AfterControlPlaneInitialized", "BeforeClusterUpgrade", "BeforeControlPlaneUpgrade", "AfterControlPlaneUpgrade",
		"BeforeWorkersUpgrade", "AfterWorkersUpgrade", "AfterClusterUpgrade", "BeforeClusterDelete",
	} {
		handlers = append(handlers, map[string]any{
			"name": strings.ToLower(hook) + ".guard", "requestHook": map[string]any{"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": hook},
		})
	}
	u.Object["spec"] = map[string]any{"clientConfig": map[string]any{"url": "https://guard.invalid/"}}
	u.Object["status"] = map[string]any{"handlers": handlers}
	return u
}
