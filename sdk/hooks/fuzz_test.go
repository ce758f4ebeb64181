package hooks

import "testing"

// FuzzID: what an extension lists as a hook is refused, or names one version of one hook.
func FuzzID(f *testing.F) {
	for _, pair := range [][2]string{{"hooks.runtime.cluster.x-k8s.io/v1alpha1", "Discovery"}, {"v1", "A"}, {"a/b/c", "A"}, {"a/", "A"}, {"", ""}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, apiVersion, hook string) {
		if id, err := ParseID(apiVersion, hook); err == nil && (id.APIVersion() != apiVersion || id.Hook != hook) {
			t.Errorf("%q, %q is %s", apiVersion, hook, id)
		}
	})
}
