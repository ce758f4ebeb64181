package clusters

import (
	"net/netip"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
)

// Reasons of waits and conditions.
const (
	reasonCluster      = "WaitingForCluster"
	reasonControlPlane = "WaitingForControlPlane"
	reasonEndpoint     = "EndpointMissing"
	reasonDenied       = "DeniedByPolicy"
)

// Stages of a plan ([reconciler.Stage]).
const (
	stageDeletion = iota + 1
	stageEndpoint
	stageReady
)

// decide computes the plan for the snapshot. The driver (package reconciler) calls it after observe, and again after a read.
// The first row that applies decides:
//
//	deleting                                            nothing
//	the Cluster does not exist                          wait
//	virtual IP address                                  wait if it cannot be used, else make it the endpoint; ready
//	the endpoint is denied by the configuration         wait
//	the Cluster or the SSHCluster has an endpoint       ready
//	the topology has not created the control plane yet  wait
//	the hosted control plane does not exist             wait
//	KubeadmControlPlane, or no control plane            wait for an endpoint
//	another control plane                               ready: it provides the endpoint
func decide(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	if !s.Object.DeletionTimestamp.IsZero() {
		p.Enter(stageDeletion, "")
		return p
	}
	stage := stageReady
	if decideEndpoint(s, &p); len(p.Waits) > 0 {
		stage = stageEndpoint
	}
	p.RecheckIn(inventory.LabelsInterval)
	p.Enter(stage, "")
	if s.Object.Spec.VirtualIP != "" && stage == stageReady {
		decideMembers(s, &p)
	}
	return p
}

func decideEndpoint(s snapshot, p *reconciler.Plan) {
	if s.Cluster == nil {
		p.WaitFor(reasonCluster, "Waiting for the Cluster that owns this object to exist").For("Cluster", ownerName(s.Object)).ToChange("")
		return
	}
	ref := s.Cluster.Spec.ControlPlaneRef
	switch {
	case s.Object.Spec.VirtualIP != "":
		decideVirtualIP(s, p)
	case s.denied() != "":
		p.WaitFor(reasonDenied, "%s", s.denied()).For(kind, s.Object.Name).UntilUserActs()
	case s.endpoint().IsValid():
	case !ref.IsDefined() && s.Cluster.Spec.Topology.IsDefined():
		p.WaitFor(reasonControlPlane, "Waiting for the topology to create the control plane, which may provide the endpoint").For("Cluster", s.Cluster.Name).
			ToChange("spec.controlPlaneRef")
	case isHosted(ref) && s.HostedControlPlane == nil:
		p.WaitFor(reasonControlPlane, "Waiting for %s %s to exist, because it may provide the endpoint", hostedKind, ref.Name).For(hostedKind, ref.Name).ToChange("")
	case !ref.IsDefined(), ref.Kind == kubeadmKind:
		p.WaitFor(reasonEndpoint, "The cluster has no control plane endpoint: set spec.virtualIP to an unused address in the subnet of the control plane hosts, or "+
			"spec.controlPlaneEndpoint to a load balancer or DNS name that leads to them").For(kind, s.Object.Name).UntilUserActs()
	}
}

// endpoint returns the control plane endpoint, if the Cluster or the SSHCluster has one.
func (s snapshot) endpoint() clusterv1.APIEndpoint {
	if s.Object.Spec.ControlPlaneEndpoint.IsValid() {
		return s.Object.Spec.ControlPlaneEndpoint
	}
	return s.Cluster.Spec.ControlPlaneEndpoint
}

// denied returns why the operator's configuration denies the endpoint, empty if it does not. An invalid address counts as a
// DNS name, whose addresses are unknown.
func (s snapshot) denied() string {
	e := s.endpoint()
	if !e.IsValid() {
		return ""
	}
	address, _ := netip.ParseAddr(e.Host)
	return s.Policy.DeniedEndpoint(e.Host, address)
}
