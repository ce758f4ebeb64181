package controlplane

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

const (
	// waitUnknown is the reason for waiting for a response of the extension.
	waitUnknown = "WaitingForInPlaceAnswer"
	waitUpdate  = "WaitingForInPlaceUpdate"

	// retryUnknown is the delay before a failed extension is called again. updateSoon is the delay before objects that
	// are not watched are read again.
	retryUnknown, updateSoon = 30 * time.Second, 2 * time.Second
)

// updateInput is the input of decisions about in-place updates.
type updateInput struct {
	ControlPlane *controlplanev1.KubeadmControlPlane
	// State of the Machines, with their clones.
	State machines.OwnerState
	// Template of infrastructure machines, and the KubeadmConfigs by name.
	Template clone.Template
	Configs  map[string]*bootstrapv1.KubeadmConfig
	Reasons  map[string][]rolloutReason
	// Enabled is true if the feature gate is enabled.
	Enabled bool
	// UpToDate is the number of up-to-date Machines that are not being deleted. Desired is the desired number of
	// Machines.
	UpToDate, Desired int
	// Checks are the responses of the extension by the names of Machines.
	Checks map[string]inplace.UpdateCheck
}

// inPlaceUpdate starts the in-place update of a Machine, or continues to start it.
type inPlaceUpdate struct{ Machine, Why string }

func (a inPlaceUpdate) String() string {
	return fmt.Sprintf("update Machine %s in place: %s", a.Machine, a.Why)
}

// checkInPlaceUpdate is the question whether the extension can update a Machine to the desired state.
type checkInPlaceUpdate struct{ Machine string }

func (a checkInPlaceUpdate) String() string {
	return fmt.Sprintf("whether Machine %s can be updated in place", a.Machine)
}

// continueUpdate waits for a Machine that is being updated, or continues to start its update. It returns false if there is
// no such Machine. isWritten reports whether a Machine was written since it was read.
func (in updateInput) continueUpdate(isWritten func(machines.OwnedMachine) bool, p *reconciler.Plan) bool {
	if !in.Enabled {
		return false
	}
	for _, m := range in.State.Members {
		if m.Deleted {
			continue
		}
		switch inplace.StateOf(m.Machine) {
		case inplace.None:
		case inplace.Triggering, inplace.Moving:
			if isWritten(m) {
				p.RecheckIn(updateSoon)
				return true
			}
			p.Do(inPlaceUpdate{Machine: m.Name, Why: "it was begun"})
			p.RecheckIn(updateSoon)
			return true
		default:
			p.WaitFor(waitUpdate, "Waiting for the in-place update of Machine %s to end", m.Name).For("Machine", m.Name).ToChange("metadata.annotations")
			return true
		}
	}
	return false
}

// beginUpdate updates a Machine in place instead of deleting it, or waits for the response whether this is possible. It
// returns false if the Machine has to be deleted.
func (in updateInput) beginUpdate(m deletionCandidate, p *reconciler.Plan) bool {
	if !in.isEligible(m) {
		return false
	}
	answer, known := in.Checks[m.Name]
	switch {
	case !known:
		p.Reads = append(p.Reads, checkInPlaceUpdate{Machine: m.Name})
	case answer.Problem != nil:
		p.WaitFor(waitUnknown, "Machine %s is neither updated nor replaced until it is known whether it can be updated in place: %s; retrying",
			m.Name, fault.UserMessage(answer.Problem)).For("Machine", m.Name).ForTime()
		p.RecheckIn(cmp.Or(answer.Retry, retryUnknown))
	case answer.CallAfter > 0:
		p.WaitFor(waitUnknown, "Waiting for the extension that says whether Machine %s can be updated in place to be callable", m.Name).
			For("Machine", m.Name).ForTime()
		p.RecheckIn(answer.CallAfter)
	case answer.Covered:
		p.Do(inPlaceUpdate{Machine: m.Name, Why: fmt.Sprintf("%s; handler %s makes all changes", condition.Names(rolloutMessages(in.Reasons[m.Name])), answer.Handler)})
	default:
		return false
	}
	return true
}

// notInPlaceReason returns the reason why a Machine is not updated in place, for an action, or the empty string if no extension
// was involved.
func (in updateInput) notInPlaceReason(name string) string {
	switch answer := in.Checks[name]; {
	case answer.Uncovered == "":
		return ""
	case answer.Handler == "":
		return "; not in place, since the API server refuses that: " + answer.Uncovered
	default:
		return fmt.Sprintf("; not in place, since handler %s does not change %s", answer.Handler, answer.Uncovered)
	}
}

// isEligible reports whether a Machine may be updated in place: it is outdated only by its spec, healthy, and needed
// afterwards.
func (in updateInput) isEligible(m deletionCandidate) bool {
	_, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]
	_, remediate := m.Annotations[clusterv1.RemediateMachineAnnotation]
	set := condition.Set(m.Status.Conditions)
	reasons := in.Reasons[m.Name]
	return in.Enabled && m.Outdated && !m.Unhealthy && !marked && !remediate && in.UpToDate < in.Desired && len(reasons) > 0 &&
		!slices.ContainsFunc(reasons, func(r rolloutReason) bool { return !isOfSpec(r.Cause) }) &&
		!set.IsFalse(clusterv1.MachineHealthCheckSucceededCondition) && set.Get(clusterv1.MachineOwnerRemediatedCondition) == nil &&
		m.Status.NodeRef.IsDefined() && m.Spec.Bootstrap.DataSecretName != nil && in.Template.Blocker() == "" &&
		in.State.Clones.InfrastructureOf(m.Machine).Presence() == contract.Found && in.Configs[m.Spec.Bootstrap.ConfigRef.Name] != nil
}

// isOfSpec reports whether a cause can be resolved by changing objects, in contrast to the age of the Machine or of
// its certificates.
func isOfSpec(c rolloutCause) bool {
	return c == rolloutVersion || c == rolloutInfrastructure || c == rolloutKubeadmConfig
}

// updateEvents returns events for updates that start, and for updates that the API server rejects.
func updateEvents(out reconciler.Outcome) []reconciler.Event {
	var events []reconciler.Event
	for _, done := range out.Done {
		if a, is := done.(inPlaceUpdate); is {
			events = append(events, reconciler.Normal("UpdatingInPlace", "In-place update of Machine %s begins: %s", a.Machine, a.Why))
		}
	}
	if a, failed := out.Failed.(inPlaceUpdate); failed {
		events = append(events, reconciler.Warning("FailedInPlaceUpdate", "%s", machines.FailureText("In-place update of Machine "+a.Machine+" cannot begin", out)))
	}
	return events
}
