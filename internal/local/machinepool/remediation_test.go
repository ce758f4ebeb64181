package machinepool

import (
	"slices"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestUnhealthyMachineIsReplaced(t *testing.T) { // MP-16
	w := newWorld(t, 0, coreCluster(), corePool(2, nil), localPool(nil))
	w.settle()
	before := w.names()
	m := &clusterv1.Machine{}
	w.must(w.world().Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: before[0]}, m))
	m.Status.Conditions = member("x", 0, "to-be-replaced").Machine.Status.Conditions
	w.must(w.world().Update(t.Context(), m))
	w.settle()
	w.check(2)
	after := w.names()
	if slices.Contains(after, before[0]) || !slices.Contains(after, before[1]) {
		t.Errorf("machines were %v, are %v: the unhealthy one is replaced, the other one stays", before, after)
	}
}

func TestHealthCheckWakesThePool(t *testing.T) { // MP-16
	for name, tc := range map[string]struct {
		words string
		want  bool
	}{
		"nothing happened":   {"owned", false},
		"found unhealthy":    {"sick", false},
		"shall be replaced":  {"to-be-replaced", true},
		"marked to go first": {"machine-marked", true},
	} {
		e := event.UpdateEvent{ObjectOld: member("a", 0, "owned").Machine, ObjectNew: member("a", 0, tc.words).Machine}
		if got := markedOrChanged().Update(e); got != tc.want {
			t.Errorf("%s: wakes %t", name, got)
		}
	}
}
