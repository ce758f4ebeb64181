package controlplane

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/admission"
	"github.com/slipwayhq/slipway/internal/machines"
)

// What is desired of a Machine says all that the webhook of Machines would add: else it would be written in each pass, and nothing
// after it would ever be done.
func TestDesiredMachineIsDefaulted(t *testing.T) {
	s := snapshot{ControlPlane: newPlane(3), Cluster: newCluster()}
	desired := s.definition().Machine("m")
	stored := desired.DeepCopy()
	defaulted, _ := admission.Default(admission.Request{New: stored})
	if defaulted != nil {
		stored = defaulted.(*clusterv1.Machine)
	}
	stored.Finalizers = []string{clusterv1.MachineFinalizer}
	if stored.Spec.Deletion.NodeDeletionTimeoutSeconds == nil {
		t.Fatal("the webhook does not set the timeout: this test shows nothing")
	}
	if !machines.Follows(stored, desired, "manager") {
		t.Errorf("stored as %+v, desired as %+v", stored.Spec, desired.Spec)
	}
}
