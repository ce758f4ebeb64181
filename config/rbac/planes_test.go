package rbac_test

import (
	"cmp"
	"testing"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// The right to run something is that of one provider, in the namespace of its Pods, and of a release alone.
func TestWhoRunsControlPlanes(t *testing.T) {
	for name, test := range map[string]struct {
		rights rbac.Rights
		want   int
	}{
		"released":         {rbac.Rights{Sets: providerset.Without(providerset.Others(providerset.ControlPlaneHosted)...), PodNamespace: home}, 2},
		"all in one":       {rbac.Rights{PodNamespace: home}, 2},
		"another provider": {rbac.Rights{Sets: providerset.Without(providerset.ControlPlaneHosted), PodNamespace: home}, 0},
		"slipway up":       {rbac.Rights{Separate: true}, 0},
		"printed":          {rbac.Rights{HostedInPods: true}, 2},
	} {
		objects, err := rbac.Objects(test.rights)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, o := range objects {
			if o.GetName() == "slipway-control-planes" {
				found++
				if o.GetNamespace() != cmp.Or(test.rights.PodNamespace, rbac.Namespace) {
					t.Errorf("%s: %s %s is in namespace %q", name, o.GetKind(), o.GetName(), o.GetNamespace())
				}
			}
		}
		if found != test.want {
			t.Errorf("%s: %d objects, want %d", name, found, test.want)
		}
	}
}
