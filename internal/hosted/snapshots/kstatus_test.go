package snapshots

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/kstatus"
)

// Tools that wait for objects of any kind wait for an EtcdSnapshotPolicy: clients 5.
func TestKstatus(t *testing.T) {
	s := hourly()
	s.Policy.Generation, s.Store.Problem = 1, "the folder is not there"
	report := func() string {
		s.Policy.Status = report(s, decide(s), reconciler.Outcome{}).Status.(hostedv1.EtcdSnapshotPolicyStatus)
		return kstatus.Compute(t, s.Policy)
	}
	if got := report(); got != kstatus.InProgress {
		t.Errorf("its store cannot be read: %s", got)
	}
	s.Store.Problem = ""
	if got := report(); got != kstatus.Current {
		t.Errorf("up to date: %s, %+v", got, s.Policy.Status.Conditions)
	}
	s.Policy.Generation = 2
	if got := kstatus.Compute(t, s.Policy); got != kstatus.InProgress {
		t.Errorf("changed, and not reconciled yet: %s", got)
	}
	if got := report(); got != kstatus.Current {
		t.Errorf("changed: %s", got)
	}
	s.Policy.DeletionTimestamp = &metav1.Time{Time: noon}
	if got := report(); got != kstatus.Terminating {
		t.Errorf("deleted: %s", got)
	}
}
