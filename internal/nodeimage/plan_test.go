package nodeimage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Nodes of all Kubernetes versions have one container runtime: with the modules of a version that is newer than it, it does not compile.
func TestOneContainerd(t *testing.T) {
	tools, err := NewToolchain(t.Context(), BuildCache{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	runtimes := func(version string) map[string]string {
		var p plan
		if err := p.readPrograms(t.Context(), tools, Options{KubernetesVersion: version}); err != nil {
			t.Fatal(err)
		}
		keys := map[string]string{}
		for _, program := range p.programs {
			for _, name := range containerdNames() {
				if program.Name == name {
					keys[name] = tools.Key(program)
				}
			}
		}
		return keys
	}
	included := runtimes(DefaultVersion)
	if len(included) != len(containerdNames()) {
		t.Fatalf("%v", included)
	}
	if diff := cmp.Diff(included, runtimes("v1.35.4")); diff != "" {
		t.Errorf("v1.35.4 (-%s +v1.35.4):\n%s", DefaultVersion, diff)
	}
}
