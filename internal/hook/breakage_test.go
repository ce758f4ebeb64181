package hook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/sdk/hooks"
)

// RT-25
func TestBroken(t *testing.T) {
	listed := func(name string, pairs ...string) runtimev1.ExtensionConfig {
		c := runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for i := 0; i < len(pairs); i += 2 {
			c.Status.Handlers = append(c.Status.Handlers, runtimev1.ExtensionHandler{
				Name: pairs[i] + "." + name, RequestHook: runtimev1.GroupVersionHook{APIVersion: hooks.Discovery.APIVersion(), Hook: pairs[i+1]}})
		}
		return c
	}
	configs := []runtimev1.ExtensionConfig{
		listed("zoo", "b", "BeforeClusterCreate", "a", "BeforeClusterCreate", "c", "BeforeClusterDelete"), listed("none", "d", "BeforeClusterDelete"),
		listed("ant", "x", "BeforeClusterCreate", "y", "GeneratePatches"),
	}
	removed := []hooks.ID{{Name: create, Version: "v1alpha1"}, {Name: hooks.Name{Group: hooks.Group, Hook: "GeneratePatches"}, Version: "v1alpha1"}, {Name: create, Version: "v1"}}
	var got []string
	for _, b := range BrokenExtensions(removed, configs) {
		got = append(got, b.String())
	}
	want := []string{
		"ExtensionConfig ant: BeforeClusterCreate of hooks.runtime.cluster.x-k8s.io/v1alpha1 is served by x.ant",
		"ExtensionConfig ant: GeneratePatches of hooks.runtime.cluster.x-k8s.io/v1alpha1 is served by y.ant",
		"ExtensionConfig zoo: BeforeClusterCreate of hooks.runtime.cluster.x-k8s.io/v1alpha1 is served by a.zoo, b.zoo",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
