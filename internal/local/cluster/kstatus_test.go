package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/kstatus"
)

// Tools that wait for objects of any kind wait for a LocalCluster: clients 5.
func TestKstatus(t *testing.T) {
	s := snapshot{Now: now, Name: "n", Policy: policy.Default(), Cluster: coreCluster(nil), Object: localCluster(func(o *infrav1.LocalCluster) { o.Generation = 1 })}
	report := func(s snapshot) string {
		s.Object.Status = report(s, decide(s), reconciler.Outcome{}).Status.(infrav1.LocalClusterStatus)
		return kstatus.Compute(t, s.Object)
	}
	if got := report(s); got != kstatus.InProgress {
		t.Errorf("created: %s", got)
	}
	s.Cluster, s.Network = endpointSet(nil), network("172.16.0.0/18")
	if got := report(s); got != kstatus.Current {
		t.Errorf("ready: %s", got)
	}
	s.Object.Generation = 2
	if got := kstatus.Compute(t, s.Object); got != kstatus.InProgress {
		t.Errorf("changed, and not reconciled yet: %s", got)
	}
	if got := report(s); got != kstatus.Current {
		t.Errorf("changed: %s", got)
	}
	s.Object.DeletionTimestamp = &metav1.Time{Time: now}
	if got := report(s); got != kstatus.Terminating {
		t.Errorf("deleted: %s", got)
	}
}
