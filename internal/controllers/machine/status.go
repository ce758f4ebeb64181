package machine

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capierrors "sigs.k8s.io/cluster-api/api/deprecated/errors"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reference"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// report returns the status and the events of a Machine. Package reconciler calls it at the end of each reconciliation
// and writes the status.
func report(s snapshot, p reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	old := s.Machine.Status
	status := clusterv1.MachineStatus{
		Initialization:         initialization(s),
		NodeRef:                nodeRef(s),
		NodeInfo:               nodeInfo(s),
		Addresses:              old.Addresses,
		FailureDomain:          old.FailureDomain,
		LastUpdated:            old.LastUpdated,
		CertificatesExpiryDate: certificatesExpiry(s),
		Deletion:               deletionStatus(s, p.Stage.Order),
		ObservedGeneration:     old.ObservedGeneration,
	}
	if ptr.Deref(status.Initialization.InfrastructureProvisioned, false) && s.Infra.Presence() == contract.Found { // it may be in the process of being provisioned again
		status.Addresses = s.Infra.Addresses.Current(old.Addresses)
		status.FailureDomain = s.Infra.FailureDomain.Current(old.FailureDomain)
	}
	if out.Err == nil && !reference.IsBroken(s.bootstrap(), s.infra()) && (deleting(s) || len(s.Node.Duplicates) == 0) {
		status.ObservedGeneration = s.Machine.Generation
	}
	j := conditionInput{snapshot: s, plan: p, out: out, reached: status.Initialization, nodeRef: status.NodeRef,
		deletion: status.Deletion}
	for _, action := range out.Done {
		if a, ok := action.(evict); ok {
			j.evicted = a.results
		}
	}
	status.Conditions = conditions.Evaluate(j, reconciler.EvaluateOptionsFor(s.Machine, s.Now))
	status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: deprecated(j, status.Conditions)}
	status.Phase = string(phase(s, p, status))
	if status.Phase != old.Phase {
		status.LastUpdated = metav1.NewTime(s.Now.Truncate(time.Second))
	}
	return reconciler.Report{Status: status, Events: events(j, status)}
}

// initialization returns the initialization status. Its fields never change back to false.
func initialization(s snapshot) clusterv1.MachineInitializationStatus {
	out := s.Machine.Status.Initialization
	yes := true
	if s.bootstrap().IsDone() || s.Machine.Spec.Bootstrap.DataSecretName != nil {
		out.BootstrapDataSecretCreated = &yes
	}
	if s.infra().IsDone() {
		out.InfrastructureProvisioned = &yes
	}
	return out
}

// nodeRef returns the reference to the Node. A known reference is never removed, even if the Node is gone.
func nodeRef(s snapshot) clusterv1.MachineNodeReference {
	if s.Node.Item == nil {
		return s.Machine.Status.NodeRef
	}
	return clusterv1.MachineNodeReference{Name: s.Node.Item.Name}
}

func nodeInfo(s snapshot) *corev1.NodeSystemInfo {
	if s.Node.Item == nil {
		return s.Machine.Status.NodeInfo
	}
	return &s.Node.Item.Status.NodeInfo
}

// phase returns the phase of the Machine. The first matching row applies:
//
//	being deleted, nothing left to do         Deleted
//	being deleted                             Deleting
//	being updated in place                    Updating
//	has a Node, infrastructure provisioned    Running
//	infrastructure provisioned                Provisioned
//	bootstrap data available                  Provisioning
//	otherwise                                 Pending
func phase(s snapshot, p reconciler.Plan, status clusterv1.MachineStatus) clusterv1.MachinePhase {
	switch {
	case deleting(s) && p.Idle():
		return clusterv1.MachinePhaseDeleted
	case deleting(s):
		return clusterv1.MachinePhaseDeleting
	case inplace.IsMarked(s.Machine):
		return clusterv1.MachinePhaseUpdating
	case status.NodeRef.IsDefined() && ptr.Deref(status.Initialization.InfrastructureProvisioned, false):
		return clusterv1.MachinePhaseRunning
	case ptr.Deref(status.Initialization.InfrastructureProvisioned, false):
		return clusterv1.MachinePhaseProvisioned
	case ptr.Deref(status.Initialization.BootstrapDataSecretCreated, false):
		return clusterv1.MachinePhaseProvisioning
	}
	return clusterv1.MachinePhasePending
}

// certificatesExpiry returns the expiry of a control plane Machine's certificates from the annotation of the
// Machine or of its bootstrap config. Invalid values are ignored.
func certificatesExpiry(s snapshot) metav1.Time {
	if !isControlPlane(s.Machine) {
		return metav1.Time{}
	}
	text, ok := s.Machine.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]
	if !ok && s.Bootstrap.Presence() == contract.Found {
		text = s.Bootstrap.GetAnnotations()[clusterv1.MachineCertificatesExpiryDateAnnotation]
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return metav1.Time{}
	}
	return metav1.NewTime(at)
}

// deprecated returns the v1beta1 status.
func deprecated(j conditionInput, set condition.Set) *clusterv1.MachineV1Beta1DeprecatedStatus {
	s := j.snapshot
	out := &clusterv1.MachineV1Beta1DeprecatedStatus{
		Conditions: condition.Project(legacy(), j.legacySet(set), s.Machine.GetV1Beta1Conditions()),
	}
	f := failure(s)
	if f.Reason != "" {
		reason := capierrors.MachineStatusError(f.Reason)
		out.FailureReason = &reason
	}
	if f.Message != "" {
		out.FailureMessage = &f.Message
	}
	return out
}

// failure returns the failure that a provider object of contract v1beta1 reports, or a failure if the
// infrastructure machine was deleted.
func failure(s snapshot) contract.Failure {
	if l := s.infra(); l.IsLost() && !deleting(s) {
		return contract.Failure{Reason: string(capierrors.InvalidConfigurationMachineError),
			Message: l.String() + " has been deleted after the Machine was provisioned"}
	}
	return reference.Failure(s.bootstrap(), s.infra())
}
