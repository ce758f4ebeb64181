package machines

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/redact"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Reasons of conditions. Other programs may rely on reasonMachineRemoved.
const (
	reasonMachineRemoved = contract.ReasonMachineRemoved
	reasonClaimed        = "HostClaimed"
	reasonPrepared       = "HostPrepared"
	reasonNotPrepared    = "HostNotPrepared"
	reasonSucceeded      = "BootstrapSucceeded"
	reasonNotStarted     = "NotBootstrapped"
)

// conditionInput is a snapshot with the plan and its outcome, from which the conditions are computed.
type conditionInput struct {
	snapshot
	plan    reconciler.Plan
	outcome reconciler.Outcome
}

// conditions of an SSHMachine.
var conditions = condition.Table[conditionInput]{
	{Type: infrav1.HostClaimedCondition, Compute: conditionInput.hostClaimed},
	{Type: infrav1.HostReachableCondition, Compute: conditionInput.hostReachable},
	{Type: infrav1.HostPreparedCondition, Compute: conditionInput.hostPrepared},
	{Type: infrav1.BootstrapExecSucceededCondition, Compute: conditionInput.bootstrapSucceeded},
	{Type: clusterv1.DeletingCondition, Polarity: condition.Negative, Compute: conditionInput.deleting},
	{Type: clusterv1.ReadyCondition, Summarize: conditionInput.ready},
}

func (conditionInput) ready(set condition.Set) condition.Result {
	return condition.Summarize(set, condition.Reasons{
		Info: clusterv1.ReadyReason, Issue: clusterv1.NotReadyReason, Unknown: clusterv1.ReadyUnknownReason,
	}, condition.Part{Type: infrav1.HostClaimedCondition}, condition.Part{Type: infrav1.HostReachableCondition, Optional: true},
		condition.Part{Type: infrav1.HostPreparedCondition}, condition.Part{Type: infrav1.BootstrapExecSucceededCondition},
		condition.Part{Type: clusterv1.DeletingCondition, Polarity: condition.Negative})
}

func (j conditionInput) hostClaimed() condition.Result {
	switch h := j.Host; {
	case h != nil && j.isProvisioned() && h.Status.State == infrav1.SSHHostQuarantined:
		return condition.False(reasonMachineRemoved, fmt.Sprintf(
			"SSHHost %s is quarantined, so the node is lost: its condition Available has the reason; delete the Machine to have it replaced", h.Name))
	case h != nil && j.plan.Stage.Order == stageClaim && j.plan.Stage.Message != "":
		return condition.False(j.plan.Stage.Reason, j.plan.Stage.Message)
	case h != nil:
		return condition.True(reasonClaimed)
	case !j.Object.DeletionTimestamp.IsZero():
		return condition.False(clusterv1.DeletingReason, "The machine has no host any more")
	case j.isProvisioned() && len(j.Recorded) == 0:
		return condition.False(reasonMachineRemoved, "No SSHHost has the claim of this machine any more: delete its Machine to have it replaced")
	}
	return condition.False(j.plan.Stage.Reason, j.plan.Stage.Message)
}

func (j conditionInput) hostReachable() condition.Result {
	if j.Host == nil {
		return condition.Absent()
	}
	out := condition.Mirror(j.Host.Status.Conditions, infrav1.ReachableCondition, condition.Absent())
	if out.Message != "" {
		out.Message = inventory.UnreachableMessage(j.Host)
	}
	return out
}

// hostPrepared reports whether the host is prepared for the bootstrap data. The SSHCluster controller makes only such
// hosts members of a virtual IP address, and hostStage (decide.go) reads the condition.
func (j conditionInput) hostPrepared() condition.Result {
	stage := j.plan.Stage
	switch {
	case j.isProvisioned(), stage.Order == stageBootstrap, stage.Order == stageProvisioned:
		return condition.True(reasonPrepared)
	case stage.Order == stagePreparation && stage.Message != "":
		return condition.False(stage.Reason, stage.Message)
	}
	if list := j.unsuitableHosts(j.outcome); len(list) > 0 { // the problems remain visible while the machine waits for another host
		last := list[len(list)-1]
		return condition.False(reasonPreflight, fmt.Sprintf("SSHHost %s/%s was released: %s", last.Namespace, last.Name, last.Message))
	}
	return condition.False(reasonNotPrepared, "")
}

func (j conditionInput) bootstrapSucceeded() condition.Result {
	why, stage := fault.As(j.outcome.Err), j.plan.Stage
	if _, failed := j.outcome.Failed.(runBootstrap); !failed {
		why = nil
	}
	switch {
	case j.isProvisioned(), stage.Order == stageProvisioned:
		return condition.True(reasonSucceeded)
	case why != nil:
		return condition.False(why.Reason, inventory.Sentence(why.Message))
	case j.Progress != nil && j.Progress.State == remote.BootstrapFailed:
		return condition.False(reasonFailed, j.failedText())
	case stage.Order == stageBootstrap && stage.Message != "":
		return condition.False(stage.Reason, stage.Message)
	}
	return condition.False(reasonNotStarted, "")
}

// failedText returns a message with the cause of the failed bootstrap, the remedy and the end of the output.
func (j conditionInput) failedText() string {
	var b strings.Builder
	switch p := j.Progress; p.Failure {
	case "timeout":
		fmt.Fprintf(&b, "The bootstrap data did not end within %d seconds on SSHHost %s", int(j.timeout().Seconds()), j.Host.Name)
		if p.Stage != "" {
			b.WriteString(", while it ran " + p.Stage)
		}
		b.WriteString(": increase spec.bootstrapTimeoutSeconds if it needs longer")
	case "reboot":
		fmt.Fprintf(&b, "SSHHost %s was rebooted while the bootstrap data ran", j.Host.Name)
	case "stopped":
		fmt.Fprintf(&b, "The bootstrap data was stopped on SSHHost %s", j.Host.Name)
	default:
		fmt.Fprintf(&b, "The bootstrap data ended with exit status %d on SSHHost %s", p.ExitCode, j.Host.Name)
	}
	b.WriteString(". Correct the cause, then delete the Machine to have it replaced")
	if log := strings.TrimSpace(string(j.Progress.Log)); log != "" {
		b.WriteString(lastLines + "  " + strings.ReplaceAll(log, "\n", "\n  "))
	}
	return b.String()
}

// lastLines separates the message from the end of a log. Package operate/progress recognizes it (messages.go), so both
// must agree.
const lastLines = "; its last lines:\n"

func (j conditionInput) deleting() condition.Result {
	if j.Object.DeletionTimestamp.IsZero() {
		return condition.False(clusterv1.NotDeletingReason, "")
	}
	return condition.TrueBecause(clusterv1.DeletingReason, infrastructure.WaitMessages(j.plan))
}

// report computes the status and the events. The driver calls it after the actions.
func report(s snapshot, p reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	old := s.Object.Status
	status := infrav1.SSHMachineStatus{
		ObservedGeneration: s.Object.Generation,
		Conditions:         conditions.Evaluate(conditionInput{s, p, out}, reconciler.EvaluateOptionsFor(s.Object, s.Now)),
		Initialization:     old.Initialization,
		UnsuitableHosts:    s.unsuitableHosts(out),
	}
	switch {
	case s.Host != nil:
		status.HostRef = &infrav1.SSHHostReference{Namespace: s.Host.Namespace, Name: s.Host.Name}
		status.FailureDomain, status.Interruptible = s.Host.Spec.FailureDomain, s.Host.Spec.Interruptible
		status.Addresses = addresses(s.Host)
	case s.isProvisioned(): // the addresses of a lost node help to find it
		status.Addresses, status.FailureDomain, status.Interruptible = old.Addresses, old.FailureDomain, old.Interruptible
	}
	if s.Progress != nil && s.Progress.State == remote.BootstrapDone {
		status.Initialization.Provisioned = ptr.To(true)
	}
	return reconciler.Report{Status: status, Events: eventsOf(s, p, status, out)}
}

// unsuitableHosts returns the hosts that the machine does not claim now, the newest last.
func (s snapshot) unsuitableHosts(out reconciler.Outcome) (list []infrav1.SSHUnsuitableHost) {
	for _, u := range s.Object.Status.UnsuitableHosts {
		if s.isUnsuitable(u) && !s.isProvisioned() {
			list = append(list, u)
		}
	}
	if slices.ContainsFunc(out.Done, func(a reconciler.Action) bool { _, rejected := a.(rejectHost); return rejected }) {
		message := redact.Clip(inventory.Sentence(fault.As(s.Preparing.Err).Message), maxUnsuitableMessage)
		list = append(list, infrav1.SSHUnsuitableHost{SSHHostReference: reference(s.Host), Since: metav1.NewTime(s.Now.Truncate(time.Second)), Message: message})
	}
	return list[max(len(list)-maxUnsuitable, 0):]
}

// Limits of the hosts that a machine does not claim.
const maxUnsuitable, maxUnsuitableMessage = 16, 4096

// addresses returns the addresses of the node on a host.
func addresses(h *infrav1.SSHHost) (out clusterv1.MachineAddresses) {
	if name := h.Status.Facts.Hostname; name != "" {
		out = append(out, clusterv1.MachineAddress{Type: clusterv1.MachineHostName, Address: name})
	}
	if address := inventory.NodeAddress(h); address != "" {
		out = append(out, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: address})
	}
	return out
}

// eventsOf returns events for the actions, and for a wait that only a user can end when it begins.
func eventsOf(s snapshot, p reconciler.Plan, status infrav1.SSHMachineStatus, out reconciler.Outcome) []reconciler.Event {
	var list []reconciler.Event
	for _, a := range out.Done {
		switch a := a.(type) {
		case claimHost:
			list = append(list, reconciler.Normal("HostClaimed", "Claimed SSHHost %s", a.Host))
		case dropClaim:
			list = append(list, reconciler.Warning("ClaimDropped", "Dropped the claim of SSHHost %s: %s", a.Host, a.Why))
		case releaseHost:
			list = append(list, reconciler.Normal("HostReleased", "Released SSHHost %s", a.Host))
		case rejectHost:
			list = append(list, reconciler.Warning("HostUnsuitable", "Released SSHHost %s: %s", a.Host, a.Why))
		}
	}
	if s.isProvisioned() != ptr.Deref(status.Initialization.Provisioned, false) {
		list = append(list, reconciler.Normal("Provisioned", "The bootstrap data has succeeded on SSHHost %s", s.Host.Name))
	}
	before := condition.Set(s.Object.Status.Conditions).Get(infrav1.BootstrapExecSucceededCondition)
	now := condition.Set(status.Conditions).Get(infrav1.BootstrapExecSucceededCondition)
	if now != nil && now.Reason == reasonFailed && (before == nil || before.Reason != reasonFailed) {
		first, _, _ := strings.Cut(now.Message, lastLines)
		list = append(list, reconciler.Warning(reasonFailed, "%s", first))
	}
	return slices.Concat(list, reconciler.UserActionEvents(withoutFailure(p), s.Object.Status.Conditions, status.Conditions))
}

// withoutFailure returns the plan without the wait for a failed bootstrap, which has an event of its own.
func withoutFailure(p reconciler.Plan) reconciler.Plan {
	p.Waits = slices.DeleteFunc(slices.Clone(p.Waits), func(w reconciler.Wait) bool { return w.Reason == reasonFailed })
	return p
}
