package machinepool

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/kstatus"
)

// Tools that wait for objects of any kind wait for a LocalMachinePool, also from zero and back: clients 5.
func TestKstatus(t *testing.T) {
	s := newSnapshot(1, member("a", 1, "new"))
	s.Object.Generation = 1
	report := func() string {
		s.Object.Status = report(s, decide(s), reconciler.Outcome{}).Status.(infrav1.LocalMachinePoolStatus)
		return kstatus.Compute(t, s.Object)
	}
	if got := report(); got != kstatus.InProgress {
		t.Errorf("a machine boots: %s", got)
	}
	s.Members = []poolMember{member("a", 1, "ready")}
	if got := report(); got != kstatus.Current {
		t.Errorf("ready: %s, %+v", got, s.Object.Status.Conditions)
	}
	s.Object.Generation = 2
	if got := kstatus.Compute(t, s.Object); got != kstatus.InProgress {
		t.Errorf("changed, and not reconciled yet: %s", got)
	}
	two, none := int32(2), int32(0)
	if s.Pool.Spec.Replicas = &two; report() != kstatus.InProgress {
		t.Errorf("one of two: %+v", s.Object.Status.Conditions)
	}
	if s.Pool.Spec.Replicas, s.Members = &none, nil; report() != kstatus.Current {
		t.Errorf("none of none: %+v", s.Object.Status.Conditions)
	}
	s.Object.DeletionTimestamp = &metav1.Time{Time: now}
	if got := report(); got != kstatus.Terminating {
		t.Errorf("deleted: %s", got)
	}
}
