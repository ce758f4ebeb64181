package hosted

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/kstatus"
)

// Tools that wait for objects of any kind wait for a HostedControlPlane until it is up, and until it is what its spec asks for: clients 5. Its
// status has the endpoint, whichever object it is from: clients 9.
func TestKstatus(t *testing.T) {
	of := func(s snapshot) string {
		s.Plane.Status = report(s, decide(s), reconciler.Outcome{}).Status.(hostedv1.HostedControlPlaneStatus)
		return kstatus.Compute(t, s.Plane)
	}
	generation := func(s *snapshot) { s.Plane.Generation = 1 }
	down := running(t, generation, func(s *snapshot) { s.Process = backend.ControlPlane{} })
	if got := of(down); got != kstatus.InProgress {
		t.Errorf("created: %s", got)
	}
	up := running(t, generation)
	if got := of(up); got != kstatus.Current {
		t.Errorf("up: %s, %+v", got, up.Plane.Status.Conditions)
	}
	if got := up.Plane.Status.ControlPlaneEndpoint; got != up.Cluster.Spec.ControlPlaneEndpoint {
		t.Errorf("the endpoint of the Cluster is not in the status: %+v", got)
	}
	up.Plane.Generation = 2
	if got := kstatus.Compute(t, up.Plane); got != kstatus.InProgress {
		t.Errorf("changed, and not reconciled yet: %s", got)
	}
	old := running(t, generation, func(s *snapshot) { s.Process.Version = "v1.35.4" })
	if got := of(old); got != kstatus.InProgress {
		t.Errorf("of another version than asked for: %s", got)
	}
	up.Plane.DeletionTimestamp = &metav1.Time{Time: now}
	if got := of(up); got != kstatus.Terminating {
		t.Errorf("deleted: %s", got)
	}
}
