package cluster

import (
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/loop"
)

// simulated reports whether the cluster has no network.
func (s Snapshot) simulated() bool { return s.Object.Spec.Backend.Simulated != nil }

// decideSimulated makes a plan for a simulated cluster: there is nothing to make, and the endpoint is the business of
// its control plane.
func decideSimulated(s Snapshot, p *loop.Plan) {
	if !s.Object.DeletionTimestamp.IsZero() {
		return
	}
	if why := s.Policy.DeniedSimulated(); why != "" {
		p.WaitFor(reasonDenied, "%s", why)
		return
	}
	value, annotated := s.Object.Annotations[infrav1.NeverProvisionsAnnotation]
	switch {
	case s.Cluster == nil:
		p.WaitFor(reasonCluster, "waiting for the Cluster that owns this object to appear")
	case annotated && value != "false":
		p.WaitFor("NeverProvisions", "the annotation %s keeps the cluster from being provisioned", infrav1.NeverProvisionsAnnotation)
	case s.Plane != nil && s.Plane.Spec.Backend.Simulated == nil && !s.Plane.Spec.ControlPlaneEndpoint.IsValid() &&
		!s.Cluster.Spec.ControlPlaneEndpoint.IsValid() && !s.Object.Spec.ControlPlaneEndpoint.IsValid():
		p.WaitFor(reasonEndpoint, "a simulated cluster has no network: set spec.backend.simulated or spec.controlPlaneEndpoint of %s %s",
			hostedKind, s.Plane.Name)
	}
}
