package machine

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// Reasons of the condition MachineProvisioned of a provisioned machine. Other programs may rely on them.
const (
	// reasonMachineRemoved: the machine was removed by hand or by another program.
	reasonMachineRemoved = backend.ReasonMachineRemoved
	// reasonMachineStopped: the machine exists and does not run.
	reasonMachineStopped = "MachineStopped"
)

const (
	reasonAbsent          = "MachineAbsent"
	reasonNotBootstrapped = "NotBootstrapped"
	reasonSucceeded       = "BootstrapSucceeded"
	// reasonLeftOut is the reason of the event about parts of the bootstrap data that the machine does not apply.
	reasonLeftOut = "BootstrapDataLeftOut"
	// reasonKubeletFails: the script runs and waits for a kubelet that exits.
	reasonKubeletFails = "KubeletFails"
)

// conditionInput is a snapshot with the plan and its outcome, from which the conditions are computed.
type conditionInput struct {
	snapshot
	plan    reconciler.Plan
	outcome reconciler.Outcome
}

// conditions are the conditions of a LocalMachine that the controller writes, in the order of their evaluation.
// Deleting and Ready are Cluster API's; the others are Slipway's.
var conditions = condition.Table[conditionInput]{
	{Type: infrav1.MachineProvisionedCondition, Compute: conditionInput.machineProvisioned},
	{Type: infrav1.BootstrapExecSucceededCondition, Compute: conditionInput.bootstrapSucceeded},
	{Type: infrav1.VersionMatchesCondition, Compute: conditionInput.versionMatches},
	{Type: infrav1.KubeletRunningCondition, Compute: conditionInput.kubeletRunning},
	{Type: clusterv1.DeletingCondition, Polarity: condition.Negative, Compute: conditionInput.deleting},
	{Type: clusterv1.ReadyCondition, Summarize: conditionInput.ready},
}

func (conditionInput) ready(set condition.Set) condition.Result {
	return condition.Summarize(set, condition.Reasons{
		Info: clusterv1.ReadyReason, Issue: clusterv1.NotReadyReason, Unknown: clusterv1.ReadyUnknownReason,
	}, condition.Part{Type: infrav1.MachineProvisionedCondition}, condition.Part{Type: infrav1.BootstrapExecSucceededCondition, Optional: true},
		condition.Part{Type: clusterv1.DeletingCondition, Polarity: condition.Negative})
}

// lastLines separates the message from the end of a log. Package operate/progress recognizes it (messages.go), so both
// must agree.
const lastLines = "; its last lines:\n"

func (j conditionInput) machineProvisioned() condition.Result {
	why := fault.As(j.outcome.Err)
	switch j.outcome.Failed.(type) {
	case createMachine, updateMachine:
	default:
		why = nil
	}
	switch {
	case why != nil:
		return condition.False(why.Reason, why.Message)
	case j.Name == "" && j.plan.Stage.Order == stageIdentity:
		return condition.False(j.plan.Stage.Reason, j.plan.Stage.Message)
	case j.Fault != nil && (j.provisioned() || j.Object.Status.InstanceID != ""):
		return condition.Unknown(j.Fault.Reason, j.Fault.Message)
	case j.Fault != nil:
		return condition.False(j.Fault.Reason, j.Fault.Message)
	case j.HostMachine.State == backend.Running && !j.isStale():
		return condition.True("MachineRunning")
	case j.provisioned():
		return j.lostMachine()
	}
	return condition.False(j.plan.Stage.Reason, j.plan.Stage.Message)
}

// lostMachine evaluates MachineProvisioned for a provisioned machine that does not run.
func (j conditionInput) lostMachine() condition.Result {
	if !j.Object.DeletionTimestamp.IsZero() {
		return condition.False(reasonAbsent, "The machine does not run, because the LocalMachine is being deleted")
	}
	if j.HostMachine.State.Exists() && j.HostMachine.State != backend.Removing {
		start, detail := "start it", ""
		if j.Capabilities.Restart != "" {
			start += " (" + j.Capabilities.Restart + ")"
		}
		if j.HostMachine.Detail != "" {
			detail = " (" + j.HostMachine.Detail + ")"
		}
		return condition.False(reasonMachineStopped, fmt.Sprintf(
			"The machine %s does not run%s: %s, or delete the Machine to have it replaced", j.Name, detail, start))
	}
	return condition.False(reasonMachineRemoved, fmt.Sprintf(
		"The machine %s was removed from the host, by hand or by another program: "+
			"delete its Machine, or have it remediated at once (annotation %s); a MachineHealthCheck waits until its Node has been unready for long enough",
		j.Name, clusterv1.RemediateMachineAnnotation))
}

func (j conditionInput) bootstrapSucceeded() condition.Result {
	why := fault.As(j.outcome.Err)
	if _, failed := j.outcome.Failed.(runBootstrap); !failed {
		why = nil
	}
	switch {
	case j.Name != "" && !j.Capabilities.Scripted:
		return condition.Absent()
	case j.provisioned(): // the skipped parts are known only right after the data has run
		return condition.TrueBecause(reasonSucceeded, succeededBefore(j.Object))
	case why != nil:
		return condition.False(why.Reason, why.Message)
	case j.Progress == nil && !j.Object.DeletionTimestamp.IsZero():
		return condition.False(reasonNotBootstrapped, "")
	case j.Progress == nil:
		return condition.Unknown(reasonRestarting, "Waiting for the machine to run")
	case j.Progress.Phase == backend.Succeeded:
		return condition.TrueBecause(reasonSucceeded, j.leftOut())
	case j.Progress.Phase == backend.Failed:
		return condition.False(reasonFailed, j.failedText())
	case j.Progress.Phase == backend.InProgress && j.Progress.Kubelet != "":
		return condition.False(reasonKubeletFails, fmt.Sprintf("The kubelet exits with %q (\"slipway logs node %s --unit kubelet\" has more); "+
			"the bootstrap data, which runs in machine %s, waits for it", j.Progress.Kubelet, j.Object.Name, j.Name))
	case j.plan.Stage.Message != "":
		return condition.False(j.plan.Stage.Reason, j.plan.Stage.Message)
	}
	return condition.Unknown(reasonBootstrapping, "")
}

// succeededBefore returns the current message of the condition if it is true.
func succeededBefore(o *infrav1.LocalMachine) string {
	if c := condition.Set(o.Status.Conditions).Get(infrav1.BootstrapExecSucceededCondition); c != nil && c.Status == metav1.ConditionTrue {
		return c.Message
	}
	return ""
}

// mostLeftOut limits the number of sections in the message and longestName the length of their names, because the
// authors of the data choose both.
const mostLeftOut, longestName = 10, 40

// leftOut returns a message about the parts of the bootstrap data that the machine does not apply, empty if there are
// none.
func (j conditionInput) leftOut() string {
	var names []string
	for n, name := range j.Progress.Skipped {
		if n == mostLeftOut {
			names = append(names, fmt.Sprintf("%d more", len(j.Progress.Skipped)-n))
			break
		}
		if len(name) > longestName {
			name = strings.ToValidUTF8(name[:longestName], "") + "…"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("The machine does not apply %s of the bootstrap data, because a node in a container has no disks, packages and init system of its own. "+
		"Use files and runcmd instead, or change the node image", strings.Join(names, ", "))
}

// failedText returns a message with the known causes of the failed bootstrap, the remedy and the end of the output.
func (j conditionInput) failedText() string {
	var b strings.Builder
	p, seconds := j.Progress, int(j.Capabilities.Timeout.Seconds())
	switch {
	case p.TimedOut && p.WaitingFor == backend.StageContainerd:
		fmt.Fprintf(&b, "containerd did not respond within %d seconds in machine %s, so the bootstrap data did not run: "+
			"increase spec.backend.container.bootstrapTimeoutSeconds if the host is slow", seconds, j.Name)
	case p.TimedOut && p.WaitingFor != "":
		fmt.Fprintf(&b, "systemd did not finish booting within %d seconds in machine %s, so the bootstrap data did not run: "+
			"increase spec.backend.container.bootstrapTimeoutSeconds if the host is slow", seconds, j.Name)
	case p.TimedOut:
		fmt.Fprintf(&b, "The bootstrap data did not end within %d seconds in machine %s%s: increase spec.backend.container.bootstrapTimeoutSeconds if it needs longer",
			seconds, j.Name, whileRunning(p.Running))
	default:
		fmt.Fprintf(&b, "The bootstrap data ended without %s in machine %s", sentinel, j.Name)
		if len(p.Failed) == 0 && p.Completed {
			b.WriteString(": no command failed; let the last one create that file")
		}
	}
	var failed []string
	for _, c := range p.Failed {
		failed = append(failed, fmt.Sprintf("%s ended with code %d", c, c.Code))
	}
	if len(failed) > 0 {
		b.WriteString("; " + strings.Join(failed, ", "))
	}
	b.WriteString(j.kubeletText())
	if left := j.leftOut(); left != "" {
		b.WriteString(". " + left)
	}
	fmt.Fprintf(&b, ". Correct the bootstrap data, then delete the Machine to have it replaced (\"slipway logs node %[1]s --bootstrap\" has the whole output, "+
		"\"slipway logs node %[1]s --unit kubelet\" the log of the kubelet)", j.Object.Name)
	if p.Log != "" {
		b.WriteString(lastLines + indent(p.Log))
	}
	return b.String()
}

func whileRunning(c *backend.Command) string {
	if c == nil {
		return ""
	}
	return ", while it ran " + c.String()
}

// bootstrapping returns a message about the current step of the bootstrap. [decide] waits with this message.
func (s snapshot) bootstrapping() string {
	switch p := s.Progress; {
	case p.WaitingFor == backend.StageContainerd:
		return "Waiting for containerd in machine " + s.Name + " to respond; the bootstrap data runs after that"
	case p.WaitingFor != "":
		return "Waiting for systemd in machine " + s.Name + " to finish booting; the bootstrap data runs after that"
	case p.Running != nil:
		return "The bootstrap data runs in machine " + s.Name + ", now " + p.Running.String()
	}
	return "The bootstrap data runs in machine " + s.Name
}

// versionMatches reports a node image whose version differs from the Machine's. A mismatch is detected only until the
// machine is provisioned, because an in-place update can change the versions of the Machine and its node later.
func (j conditionInput) versionMatches() condition.Result {
	have, want := j.nodeVersion(), j.version()
	known := condition.Set(j.Object.Status.Conditions).Get(infrav1.VersionMatchesCondition) != nil
	switch {
	case !j.Object.DeletionTimestamp.IsZero(), !j.HostMachine.State.Exists(), j.Capabilities.Image == "", j.provisioned() && !known:
		return condition.Absent()
	case have == "", want == "", strings.TrimPrefix(have, "v") == strings.TrimPrefix(want, "v"):
		return condition.Absent()
	}
	return condition.False("AnotherVersion", fmt.Sprintf("The node image %s has Kubernetes %s, but spec.version of the Machine is %s: "+
		"omit the image to use the default image of that version, or set the version to that of the image", j.Capabilities.Image, have, want))
}

// kubeletText returns a message about the last exit of the kubelet or the kube-apiserver, empty if none is known.
func (j conditionInput) kubeletText() string {
	switch {
	case j.Progress.Kubelet != "":
		return fmt.Sprintf("; the kubelet exits with %q", j.Progress.Kubelet)
	case j.Progress.APIServer != "":
		return fmt.Sprintf("; kube-apiserver exits with %q", j.Progress.APIServer)
	}
	return ""
}

func (j conditionInput) deleting() condition.Result {
	if j.Object.DeletionTimestamp.IsZero() {
		return condition.False(clusterv1.NotDeletingReason, "")
	}
	text := infrastructure.WaitMessages(j.plan)
	if why := fault.As(j.outcome.Err); why != nil {
		text = strings.TrimPrefix(text+"\n"+why.Message, "\n")
	}
	return condition.TrueBecause(clusterv1.DeletingReason, text)
}

func indent(log string) string { return "  " + strings.ReplaceAll(log, "\n", "\n  ") }

// report computes the status and the events. Package reconciler calls it after the actions. It is pure. A volatile
// machine is deleted immediately, so its deletion is reported only if it fails. The status of a provisioned volatile
// machine is left unchanged while its control plane does not run yet after a restart.
func report(s snapshot, p reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	if s.Capabilities.Volatile && out.Err == nil && (!s.Object.DeletionTimestamp.IsZero() || s.Fault != nil && s.provisioned()) {
		return reconciler.Report{}
	}
	old := s.Object.Status
	s.HostMachine = s.hostAfter(out)
	status := infrav1.LocalMachineStatus{
		ObservedGeneration: s.Object.Generation,
		Conditions:         conditions.Evaluate(conditionInput{s, p, out}, reconciler.EvaluateOptionsFor(s.Object, s.Now)),
		Initialization:     old.Initialization,
		Addresses:          old.Addresses,
		FailureDomain:      s.failureDomain(),
		InstanceID:         old.InstanceID,
		NodeVersion:        old.NodeVersion,
	}
	if s.HostMachine.State.Exists() && !s.isStale() {
		status.InstanceID = s.HostMachine.ID
		status.Addresses = addresses(s.HostMachine)
		if status.NodeVersion = s.HostMachine.NodeVersion; status.NodeVersion == "" {
			status.NodeVersion = s.version()
		}
	}
	if s.bootstrapped() && s.identified(out) {
		status.Initialization.Provisioned = ptr.To(true)
	}
	if s.Capabilities.Volatile {
		return reconciler.Report{Status: status}
	}
	return reconciler.Report{Status: status, Events: eventsOf(s, status, out)}
}

// hostAfter returns the expected machine after the plan's actions, without inspecting it again.
func (s snapshot) hostAfter(out reconciler.Outcome) backend.Machine {
	for _, a := range out.Done {
		if created, ok := a.(createMachine); ok && created.Startup == 0 && s.Capabilities.Running.State != "" {
			return s.Capabilities.Running
		}
	}
	return s.HostMachine
}

// bootstrapped reports whether the machine has become a node.
func (s snapshot) bootstrapped() bool {
	if s.Capabilities.Scripted {
		return s.Progress != nil && s.Progress.Phase == backend.Succeeded
	}
	return s.HostMachine.State == backend.Running && !s.isStale()
}

// identified reports whether the provider ID is set, in this reconciliation or an earlier one.
func (s snapshot) identified(out reconciler.Outcome) bool {
	set := slices.ContainsFunc(out.Done, func(a reconciler.Action) bool { _, ok := a.(setProviderID); return ok })
	return set || s.Object.Spec.ProviderID != ""
}

// addresses returns the known addresses of a machine.
func addresses(m backend.Machine) clusterv1.MachineAddresses {
	var out clusterv1.MachineAddresses
	if m.Hostname != "" {
		out = append(out, clusterv1.MachineAddress{Type: clusterv1.MachineHostName, Address: m.Hostname})
	}
	if m.Address.IsValid() {
		out = append(out, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: m.Address.String()})
	}
	return out
}

// eventsOf returns events for the actions, and for a problem when it begins.
func eventsOf(s snapshot, status infrav1.LocalMachineStatus, out reconciler.Outcome) []reconciler.Event {
	var list []reconciler.Event
	for _, a := range out.Done {
		switch a := a.(type) {
		case createMachine:
			list = append(list, reconciler.Normal("MachineStarted", "Started machine %s of %s", a.Name, a.Image))
		case deleteMachine:
			list = append(list, reconciler.Normal("MachineDeleted", "Deleted machine %s: %s", a.Name, a.Why))
		}
	}
	quiet := map[string]bool{
		reasonOwner: true, reasonInfrastructure: true, reasonBootstrapData: true, reasonCreating: true, reasonRestarting: true,
		reasonBootstrapping: true, reasonNotBootstrapped: true, reasonAbsent: true, reasonDeleting: true,
	}
	before := condition.Set(s.Object.Status.Conditions)
	for _, t := range []string{infrav1.MachineProvisionedCondition, infrav1.BootstrapExecSucceededCondition, infrav1.KubeletRunningCondition} {
		now, then := condition.Set(status.Conditions).Get(t), before.Get(t)
		if now != nil && now.Status != "True" && !quiet[now.Reason] && (then == nil || then.Reason != now.Reason) {
			list = append(list, reconciler.Warning(now.Reason, "%s", singleLine(now.Message)))
		}
	}
	if s.provisioned() != ptr.Deref(status.Initialization.Provisioned, false) {
		list = append(list, reconciler.Normal("Provisioned", "The node runs and its bootstrap data has succeeded"))
		if c := condition.Set(status.Conditions).Get(infrav1.BootstrapExecSucceededCondition); c != nil && c.Message != "" {
			list = append(list, reconciler.Warning(reasonLeftOut, "%s", c.Message))
		}
	}
	return list
}

// singleLine shortens a message for an event: only the last line of a log is included.
func singleLine(message string) string {
	first, rest, more := strings.Cut(message, lastLines)
	if !more {
		return message
	}
	lines := strings.Split(strings.TrimSpace(rest), "\n")
	return first + "; its last line: " + strings.TrimSpace(lines[len(lines)-1])
}
