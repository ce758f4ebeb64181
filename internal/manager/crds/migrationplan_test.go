package crds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/slipwayhq/slipway/internal/fault"
)

func crd(generation int64, observed string, stored ...string) *apiextensionsv1.CustomResourceDefinition {
	c := &apiextensionsv1.CustomResourceDefinition{}
	c.Generation = generation
	if observed != "" {
		c.Annotations = map[string]string{"crd-migration.cluster.x-k8s.io/observed-generation": observed}
	}
	c.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1", Served: true}, {Name: "v2", Served: true, Storage: true}, {Name: "v0"},
	}
	c.Status.StoredVersions = stored
	return c
}

func TestDecide(t *testing.T) { // CM-01, CM-02, CM-03
	cases := map[string]struct {
		reason             string
		crd                *apiextensionsv1.CustomResourceDefinition
		skip               []Phase
		done, store, clean bool
	}{
		"created":         {"nothing can be stored in another version", crd(1, "", "v2"), nil, true, false, false},
		"updated":         {"CM-01: objects may be stored in v1", crd(2, "1", "v1", "v2"), nil, false, true, true},
		"never migrated":  {"CM-03: the annotation is missing", crd(2, "", "v1", "v2"), nil, false, true, true},
		"same storage":    {"CM-02: versions may have ceased to be served", crd(3, "2", "v2"), nil, false, false, true},
		"once":            {"CM-03: this generation was migrated", crd(2, "2", "v1", "v2"), nil, true, false, false},
		"skip all":        {"CM-03: the flag", crd(2, "1", "v1", "v2"), []Phase{allPhases}, true, false, false},
		"skip migration":  {"CM-03: the flag", crd(2, "1", "v1", "v2"), []Phase{storageVersionMigration}, false, false, true},
		"skip clean":      {"CM-03: the flag", crd(2, "1", "v1", "v2"), []Phase{cleanupManagedFields}, false, true, false},
		"older is stored": {"CM-01: only the older one", crd(2, "1", "v1"), nil, false, true, true},
	}
	for name, tc := range cases {
		p := decide(tc.crd, tc.skip)
		if p.Done != tc.done || p.Store != tc.store || p.Clean != tc.clean || p.Version != "v2" {
			t.Errorf("%s: %+v, but %s", name, p, tc.reason)
		}
		if diff := cmp.Diff([]string{"v1", "v2"}, p.Served); diff != "" {
			t.Errorf("%s: served (-want +got):\n%s", name, diff)
		}
	}
}

func TestParsePhases(t *testing.T) { // CM-03
	got, err := ParsePhases([]string{"StorageVersionMigration", " CleanupManagedFields", "All", ""})
	if diff := cmp.Diff([]Phase{storageVersionMigration, cleanupManagedFields, allPhases}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := ParsePhases([]string{"Everything"}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a phase that is none: %v", err)
	}
}
