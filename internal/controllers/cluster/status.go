package cluster

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capierrors "sigs.k8s.io/cluster-api/api/deprecated/errors"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reference"
)

// report returns the status and the events of a Cluster. Package reconciler calls it at the end of each reconciliation
// and writes the status.
func report(s snapshot, p reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	status := clusterv1.ClusterStatus{
		Initialization:     initialization(s),
		ControlPlane:       controlPlaneStatus(s),
		Workers:            workersStatus(s),
		FailureDomains:     failureDomains(s),
		ObservedGeneration: s.Cluster.Status.ObservedGeneration,
	}
	if out.Err == nil && !reference.IsBroken(s.infra(), s.control()) {
		status.ObservedGeneration = s.Cluster.Generation
	}
	j := conditionInput{snapshot: s, plan: p, out: out, reached: status.Initialization}
	status.Conditions = conditions.Evaluate(j, reconciler.EvaluateOptionsFor(s.Cluster, s.Now))
	status.Phase = string(phase(s, status.Initialization))
	status.Deprecated = &clusterv1.ClusterDeprecatedStatus{V1Beta1: deprecated(s, status.Conditions)}
	return reconciler.Report{Status: status, Events: events(s, status.Initialization)}
}

// initialization returns the initialization status. Its fields never change back to false.
func initialization(s snapshot) clusterv1.ClusterInitializationStatus {
	out := s.Cluster.Status.Initialization
	yes := true
	if l := s.infra(); l.IsDone() || l.Reached {
		out.InfrastructureProvisioned = &yes
	}
	if l := s.control(); l.IsDone() || l.Reached {
		out.ControlPlaneInitialized = &yes
	}
	return out
}

// hasControlPlaneNode reports whether any control plane Machine has a Node. A Cluster without a control plane object
// counts as initialized from then on (links.go).
func hasControlPlaneNode(s snapshot) bool {
	for _, m := range s.machines(true) {
		if m.Status.NodeRef.IsDefined() {
			return true
		}
	}
	return false
}

func failureDomains(s snapshot) []clusterv1.FailureDomain {
	if !s.infra().IsDone() {
		return s.Cluster.Status.FailureDomains
	}
	return s.Infra.FailureDomains.Current(s.Cluster.Status.FailureDomains)
}

// phase returns the phase of the Cluster. The first matching row applies:
//
//	being deleted                                   Deleting
//	infrastructure provisioned and endpoint known   Provisioned
//	infrastructure or control plane referenced      Provisioning
//	otherwise                                       Pending
func phase(s snapshot, in clusterv1.ClusterInitializationStatus) clusterv1.ClusterPhase {
	spec := s.Cluster.Spec
	switch {
	case deleting(s):
		return clusterv1.ClusterPhaseDeleting
	case ptr.Deref(in.InfrastructureProvisioned, false) && spec.ControlPlaneEndpoint.IsValid():
		return clusterv1.ClusterPhaseProvisioned
	case spec.InfrastructureRef.IsDefined() || spec.ControlPlaneRef.IsDefined():
		return clusterv1.ClusterPhaseProvisioning
	}
	return clusterv1.ClusterPhasePending
}

// deprecated returns the v1beta1 status.
func deprecated(s snapshot, set condition.Set) *clusterv1.ClusterV1Beta1DeprecatedStatus {
	out := &clusterv1.ClusterV1Beta1DeprecatedStatus{
		Conditions: condition.Project(legacy(s), withLegacyReady(s, set), s.Cluster.GetV1Beta1Conditions()),
	}
	f := reference.Failure(s.infra(), s.control())
	if f.Reason != "" {
		reason := capierrors.ClusterStatusError(f.Reason)
		out.FailureReason = &reason
	}
	if f.Message != "" {
		out.FailureMessage = &f.Message
	}
	return out
}

// events returns an event when the infrastructure or the control plane becomes initialized, or when a reference
// cannot be read. Each is recorded once.
func events(s snapshot, in clusterv1.ClusterInitializationStatus) []reconciler.Event {
	var out []reconciler.Event
	before := s.Cluster.Status.Initialization
	if ptr.Deref(in.InfrastructureProvisioned, false) && !ptr.Deref(before.InfrastructureProvisioned, false) {
		out = append(out, reconciler.Normal("InfrastructureReady", "Infrastructure of Cluster %s is provisioned", s.Cluster.Name))
	}
	if ptr.Deref(in.ControlPlaneInitialized, false) && !ptr.Deref(before.ControlPlaneInitialized, false) {
		out = append(out, reconciler.Normal("ControlPlaneInitialized", "Control plane of Cluster %s is initialized", s.Cluster.Name))
	}
	return append(out, reference.Events(s.Cluster.Status.Conditions, s.infra(), s.control())...)
}
