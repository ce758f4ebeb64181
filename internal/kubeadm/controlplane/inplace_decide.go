package controlplane

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

const (
	// waitUnknown is the reason for waiting for a response of the extension.
	waitUnknown = "WaitingForInPlaceAnswer"
	waitUpdate  = "WaitingForInPlaceUpdate"

	// retryUnknown is the delay before a failed extension is called again.
	retryUnknown = 30 * time.Second
)

// inPlaceUpdate starts the in-place update of a Machine, or continues to start it. [scale] plans it for an outdated
// Machine that it would otherwise delete, if the feature gate InPlaceUpdates is enabled; [decideChange] continues it.
// The steps are in the package documentation.
type inPlaceUpdate struct{ Machine, Why string }

func (a inPlaceUpdate) String() string {
	return fmt.Sprintf("update Machine %s in place: %s", a.Machine, a.Why)
}

// checkInPlaceUpdate reads whether the extension can update a Machine to the desired state.
type checkInPlaceUpdate struct{ Machine string }

func (a checkInPlaceUpdate) String() string {
	return fmt.Sprintf("whether Machine %s can be updated in place", a.Machine)
}

// continueUpdate waits for a Machine that is being updated, or continues to start its update. It returns false if there
// is no such Machine. It is a step of [decideChange].
func continueUpdate(s snapshot, p *reconciler.Plan) bool {
	if !s.Settings.InPlaceUpdates {
		return false
	}
	for _, m := range s.Machines {
		if m.Deleted {
			continue
		}
		switch inplace.StateOf(m.Machine) {
		case inplace.None:
		case inplace.Triggering, inplace.Moving:
			if !s.isPending(m) {
				p.Do(inPlaceUpdate{Machine: m.Name, Why: "its update has begun"})
			}
			p.RecheckIn(soon) // the objects are not watched
			return true
		default:
			p.WaitFor(waitUpdate, "Waiting for the in-place update of Machine %s to end", m.Name).For(machineKind, m.Name).ToChange("metadata.annotations")
			return true
		}
	}
	return false
}

// beginUpdate updates a Machine in place instead of deleting it, or waits for the response whether this is possible. It
// returns false if the Machine has to be deleted. [scaleDown] calls it before it would delete an outdated Machine.
func (s snapshot) beginUpdate(m memberMachine, p *reconciler.Plan) bool {
	if !s.isEligible(m) {
		return false
	}
	check, known := s.InPlace[m.Name]
	switch {
	case !known:
		p.Reads = append(p.Reads, checkInPlaceUpdate{Machine: m.Name})
	case check.Problem != nil:
		p.WaitFor(waitUnknown, "Machine %s is neither updated nor replaced until it is known whether it can be updated in place: %s; retrying",
			m.Name, fault.UserMessage(check.Problem)).For(machineKind, m.Name).ForTime()
		p.RecheckIn(cmp.Or(check.Retry, retryUnknown))
	case check.CallAfter > 0:
		p.WaitFor(waitUnknown, "Waiting to call the extension that determines whether Machine %s can be updated in place", m.Name).
			For(machineKind, m.Name).ForTime()
		p.RecheckIn(check.CallAfter)
	case check.Covered:
		p.Do(inPlaceUpdate{Machine: m.Name, Why: fmt.Sprintf("%s; handler %s makes all changes", condition.Names(rolloutMessages(m.Reasons)), check.Handler)})
	default:
		return false
	}
	return true
}

// notInPlaceReason returns the reason why a Machine is not updated in place, for an action, or the empty string if no
// extension was involved. [scale] calls it.
func (s snapshot) notInPlaceReason(name string) string {
	switch check := s.InPlace[name]; {
	case check.Uncovered == "":
		return ""
	case check.Handler == "":
		return "; no in-place update, because the API server rejects it: " + check.Uncovered
	default:
		return fmt.Sprintf("; no in-place update, because handler %s does not change %s", check.Handler, check.Uncovered)
	}
}

// isEligible reports whether a Machine may be updated in place: it is outdated only by its spec, healthy, and needed
// afterwards.
func (s snapshot) isEligible(m memberMachine) bool {
	_, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]
	_, remediate := m.Annotations[clusterv1.RemediateMachineAnnotation]
	set := condition.Set(m.Status.Conditions)
	upToDate := len(s.candidates()) - len(s.outdated())
	return s.Settings.InPlaceUpdates && m.isOutdated() && m.Unhealthy == "" && !marked && !remediate && upToDate < desired(s) &&
		!slices.ContainsFunc(m.Reasons, func(r rolloutReason) bool { return !isOfSpec(r.Cause) }) &&
		!set.IsFalse(clusterv1.MachineHealthCheckSucceededCondition) && set.Get(clusterv1.MachineOwnerRemediatedCondition) == nil &&
		m.Status.NodeRef.IsDefined() && m.Spec.Bootstrap.DataSecretName != nil && s.Infra.Blocker() == "" &&
		s.Clones.InfrastructureOf(m.Machine).Presence() == contract.Found && m.Config != nil
}

// isOfSpec reports whether a cause can be resolved by changing objects, in contrast to the age of the Machine or of
// its certificates.
func isOfSpec(c rolloutCause) bool {
	return c == rolloutVersion || c == rolloutInfrastructure || c == rolloutKubeadmConfig
}

// updateEvents returns events for updates that start, and for updates that the API server rejects. [report] calls it.
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
