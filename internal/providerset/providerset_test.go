package providerset_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/providerset"
)

// What is in two sets would be started, installed and bound twice.
func TestNothingIsInTwoSets(t *testing.T) {
	seen := map[string]providerset.Name{}
	for _, set := range providerset.All() {
		for _, thing := range slices.Concat(set.CRDs, slices.Collect(maps.Keys(set.Controllers)), set.Flags, []string{set.MutatingWebhookName(), set.ValidatingWebhookName()}) {
			if other, ok := seen[thing]; ok {
				t.Errorf("%s belongs to %s and %s", thing, other, set.Name)
			}
			seen[thing] = set.Name
		}
		if !slices.IsSorted(providerset.CRDs([]providerset.Set{set})) || len(set.CRDs) == 0 {
			t.Errorf("%s has no CRDs: %v", set.Name, set.CRDs)
		}
	}
}

func TestSelection(t *testing.T) {
	names := func(sets []providerset.Set) (out []providerset.Name) {
		for _, s := range sets {
			out = append(out, s.Name)
		}
		return out
	}
	core, local, hosted := providerset.Core, providerset.InfrastructureLocal, providerset.ControlPlaneHosted
	shared := []string{"clusters.cluster.x-k8s.io", "machinepools.cluster.x-k8s.io", "machines.cluster.x-k8s.io"}
	cases := map[string]struct {
		reason  string
		only    []providerset.Name
		want    []providerset.Name
		missing []string
	}{
		"core alone":           {"control planes and infrastructure of others", []providerset.Name{core}, []providerset.Name{core}, nil},
		"infrastructure alone": {"a core of others brings what it watches", []providerset.Name{local}, []providerset.Name{local}, shared},
		"two without the core": {"each kind is named once", []providerset.Name{local, hosted}, []providerset.Name{hosted, local}, shared},
		"core and one":         {"the core brings what it watches", []providerset.Name{local, core}, []providerset.Name{core, local}, nil},
		"the backend alone":    {"it has no controllers", []providerset.Name{providerset.Simulated}, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sets := providerset.Without(providerset.Others(tc.only...)...)
			if diff := cmp.Diff(tc.want, names(sets)); diff != "" {
				t.Errorf("%s: sets (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.missing, providerset.Missing(sets)); diff != "" {
				t.Errorf("%s: CRDs that others bring (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if diff := cmp.Diff([]providerset.Name{"a", "b"}, providerset.Unknown([]providerset.Name{"b", core, "a", "b"})); diff != "" {
		t.Errorf("unknown names (-want +got):\n%s", diff)
	}
}
