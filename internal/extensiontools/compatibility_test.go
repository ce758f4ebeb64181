package extensiontools_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/extensiontools"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

func extensionConfig(name string, handlers ...[3]string) runtimev1.ExtensionConfig {
	c := runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, h := range handlers {
		c.Status.Handlers = append(c.Status.Handlers, runtimev1.ExtensionHandler{
			Name: h[0] + "." + name, RequestHook: runtimev1.GroupVersionHook{APIVersion: h[1], Hook: h[2]},
		})
	}
	return c
}

// RT-25: before an upgrade it is said which extensions the new version could not call, and which only a later one could not.
func TestCheck(t *testing.T) {
	list := hooks.ClusterAPI()
	for i := range list {
		if list[i].ID.Hook == "BeforeClusterDelete" {
			list[i].Deprecation = &hooks.Deprecation{Since: hooks.Release{Minor: "v1.14", Date: "2026-08-01"}}
		}
	}
	catalog, err := hooks.New(list)
	if err != nil {
		t.Fatal(err)
	}
	const now = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
	got := extensiontools.CheckCompatibility(catalog, []runtimev1.ExtensionConfig{
		extensionConfig("zoo", [3]string{"a", now, "BeforeClusterCreate"}, [3]string{"b", now, "BeforeLunch"}, [3]string{"c", now, "BeforeClusterDelete"}),
		extensionConfig("ant", [3]string{"d", "hooks.runtime.cluster.x-k8s.io/v1alpha0", "BeforeClusterCreate"}, [3]string{"e", now, "BeforeLunch"}, [3]string{"f", "nonsense", "X"}),
		extensionConfig("well", [3]string{"g", now, "GeneratePatches"}),
		extensionConfig("new"),
	})
	want := extensiontools.CompatibilityReport{
		Broken: []string{
			"ExtensionConfig ant: BeforeClusterCreate of hooks.runtime.cluster.x-k8s.io/v1alpha0 is served by d.ant",
			"ExtensionConfig ant: BeforeLunch of hooks.runtime.cluster.x-k8s.io/v1alpha1 is served by e.ant",
			"ExtensionConfig zoo: BeforeLunch of hooks.runtime.cluster.x-k8s.io/v1alpha1 is served by b.zoo",
		},
		Deprecated: []string{
			"ExtensionConfig zoo: BeforeClusterDelete of hooks.runtime.cluster.x-k8s.io/v1alpha1 is served by c.zoo: the hook goes without a replacement",
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
