package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
)

func TestClusterResourceSet(t *testing.T) { // RS-01, RS-04, RS-06
	set := func(label, strategy string) *addonsv1.ClusterResourceSet {
		s := &addonsv1.ClusterResourceSet{Spec: addonsv1.ClusterResourceSetSpec{Strategy: strategy}}
		if label != "" {
			s.Spec.ClusterSelector.MatchLabels = map[string]string{"cni": label}
		}
		return s
	}
	for name, tc := range map[string]struct {
		reason   string
		set, old *addonsv1.ClusterResourceSet
		want     []string
	}{
		"valid":          {"nothing is wrong", set("a", "ApplyOnce"), nil, nil},
		"everything":     {"an empty selector would select all clusters", set("", "ApplyOnce"), nil, []string{"spec.clusterSelector"}},
		"broken":         {"nothing matches it", set("a b", "ApplyOnce"), nil, []string{"spec.clusterSelector"}},
		"other clusters": {"where it was applied would be forgotten", set("b", "ApplyOnce"), set("a", "ApplyOnce"), []string{"spec.clusterSelector"}},
		"other strategy": {"what was applied once would be applied again", set("a", "Reconcile"), set("a", "ApplyOnce"), []string{"spec.strategy"}},
		"old object":     {"one from before there was a default", set("a", "ApplyOnce"), set("a", ""), nil},
	} {
		r := Request{New: tc.set}
		if tc.old != nil {
			r.Old = tc.old
		}
		if diff := cmp.Diff(tc.want, problems(Validate(r))); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
	out, changed := Default(Request{New: set("a", "")})
	if got := out.(*addonsv1.ClusterResourceSet).Spec.Strategy; !changed || got != "ApplyOnce" {
		t.Errorf("the default is %q", got)
	}
	if _, changed := Default(Request{New: set("a", "Reconcile")}); changed {
		t.Error("a strategy that is set stays")
	}
	binding := func(cluster string) *addonsv1.ClusterResourceSetBinding {
		return &addonsv1.ClusterResourceSetBinding{Spec: addonsv1.ClusterResourceSetBindingSpec{ClusterName: cluster}}
	}
	if v := Validate(Request{New: binding("b"), Old: binding("a")}); len(v.Errors) != 1 {
		t.Errorf("a binding goes over to another cluster: %v", v.Errors)
	}
	if v := Validate(Request{New: binding("b"), Old: binding("")}); len(v.Errors) != 0 {
		t.Errorf("one without a name may get it: %v", v.Errors)
	}
}
