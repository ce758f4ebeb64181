package machine

import (
	"fmt"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// Reasons of the conditions of a machine whose container was there. Others may rely on them.
const (
	// ReasonContainerRemoved: somebody removed the container of a machine that was provisioned.
	ReasonContainerRemoved = backend.ReasonContainerRemoved
	// ReasonContainerStopped: the container of a machine that was provisioned does not run.
	ReasonContainerStopped = "ContainerStopped"
)

// Facts are what the conditions are made from.
type Facts struct {
	Snapshot
	Plan    loop.Plan
	Outcome loop.Outcome
}

// Conditions of a LocalMachine (IM-06).
func Conditions() condition.Table[Facts] {
	return condition.Table[Facts]{
		{Type: infrav1.ContainerProvisionedCondition, Of: containerProvisioned},
		{Type: infrav1.BootstrapExecSucceededCondition, Of: bootstrapSucceeded},
		{Type: clusterv1.DeletingCondition, Polarity: condition.Negative, Of: deleting},
		condition.Ready[Facts](infrav1.ContainerProvisionedCondition, infrav1.BootstrapExecSucceededCondition),
	}
}

func containerProvisioned(f Facts) condition.Verdict {
	if why := f.failed(Create{}); why != nil {
		return condition.False(why.Reason, why.Message)
	}
	if f.Name == "" && len(f.Plan.Wait) > 0 {
		return condition.False(f.Plan.Wait[0].Reason, f.Plan.Wait[0].Message)
	}
	if f.Fault != nil {
		if f.Object.Status.ContainerID == "" {
			return condition.False(f.Fault.Reason, f.Fault.Message)
		}
		return condition.Unknown(f.Fault.Reason, f.Fault.Message)
	}
	if f.Host.State == backend.Running {
		return condition.True("ContainerRunning")
	}
	if f.provisioned() {
		return lost(f)
	}
	if len(f.Plan.Wait) > 0 {
		return condition.False(f.Plan.Wait[0].Reason, f.Plan.Wait[0].Message)
	}
	return condition.False("ContainerAbsent", "")
}

// lost says what became of the container of a machine that was provisioned.
func lost(f Facts) condition.Verdict {
	if !f.Object.DeletionTimestamp.IsZero() {
		return condition.False("ContainerAbsent", "the container is gone, or going")
	}
	if f.Host.State.Exists() {
		return condition.False(ReasonContainerStopped, fmt.Sprintf(
			"container %s does not run (%s): start it (docker start %s), or delete the Machine to have it replaced", f.Name, f.Host.Detail, f.Name))
	}
	return condition.False(ReasonContainerRemoved, fmt.Sprintf(
		"container %s was removed from the host, by hand or by another program: the machine has to be replaced", f.Name))
}

func bootstrapSucceeded(f Facts) condition.Verdict {
	if f.provisioned() {
		return condition.True("BootstrapSucceeded")
	}
	if why := f.failed(Bootstrap{}); why != nil {
		return condition.False(why.Reason, why.Message)
	}
	if f.Progress == nil {
		if !f.Object.DeletionTimestamp.IsZero() {
			return condition.False("NotBootstrapped", "")
		}
		return condition.Unknown(reasonRestarting, "waiting for the container")
	}
	switch f.Progress.Phase {
	case backend.Succeeded:
		return condition.True("BootstrapSucceeded")
	case backend.Failed:
		return condition.False(reasonFailed, fmt.Sprintf(
			"the bootstrap data ended without %s inside container %s; its last lines:\n%s", sentinel, f.Name, indent(f.Progress.Log)))
	}
	if len(f.Plan.Wait) > 0 {
		return condition.False(f.Plan.Wait[0].Reason, f.Plan.Wait[0].Message)
	}
	return condition.Unknown(reasonBootstrapping, "")
}

func deleting(f Facts) condition.Verdict {
	if f.Object.DeletionTimestamp.IsZero() {
		return condition.False(clusterv1.NotDeletingReason, "")
	}
	var lines []string
	for _, w := range f.Plan.Wait {
		lines = append(lines, w.Message)
	}
	if why := fault.As(f.Outcome.Err); why != nil {
		lines = append(lines, why.Message)
	}
	return condition.TrueBecause(clusterv1.DeletingReason, strings.Join(lines, "\n"))
}

// failed returns the fault with which an action of the same type ended the pass, nil if none did. What the API server
// says is not for users.
func (f Facts) failed(like loop.Action) *fault.Fault {
	if f.Outcome.Failed == nil || fmt.Sprintf("%T", f.Outcome.Failed) != fmt.Sprintf("%T", like) {
		return nil
	}
	return fault.As(f.Outcome.Err)
}

func indent(log string) string { return "  " + strings.ReplaceAll(log, "\n", "\n  ") }

// Report makes the status and the events.
func Report(s Snapshot, p loop.Plan, out loop.Outcome) loop.Report {
	if s.simulated() {
		return reportSimulated(s, p, out)
	}
	old := s.Object.Status
	status := infrav1.LocalMachineStatus{
		Conditions:     Conditions().Evaluate(Facts{s, p, out}, loop.MomentOf(s.Object, s.Now)),
		Initialization: old.Initialization,
		Addresses:      old.Addresses,
		FailureDomain:  s.failureDomain(),
		ContainerID:    old.ContainerID,
		NodeVersion:    old.NodeVersion,
	}
	if s.Host.State.Exists() {
		status.ContainerID = s.Host.ID
		status.Addresses = addresses(s.Host)
		if status.NodeVersion = s.Host.NodeVersion; status.NodeVersion == "" {
			status.NodeVersion = s.version()
		}
	}
	if s.Progress != nil && s.Progress.Phase == backend.Succeeded && s.Object.Spec.ProviderID != "" { // IM-02, IM-05
		yes := true
		status.Initialization.Provisioned = &yes
	}
	return loop.Report{Status: status, Events: eventsOf(s, status, out)}
}

// addresses of a machine, as far as they are known (IM-04).
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

// eventsOf tells what was done, and of a trouble when it begins.
func eventsOf(s Snapshot, status infrav1.LocalMachineStatus, out loop.Outcome) []loop.Event {
	var list []loop.Event
	for _, a := range out.Done {
		switch a := a.(type) {
		case Create:
			list = append(list, loop.Normal("ContainerStarted", "started container %s of %s", a.Name, a.Image))
		case DeleteContainer:
			list = append(list, loop.Normal("ContainerRemoved", "removed container %s: %s", a.Name, a.Why))
		}
	}
	quiet := map[string]bool{
		reasonOwner: true, reasonInfrastructure: true, reasonBootstrapData: true, reasonCreating: true, reasonRestarting: true,
		reasonBootstrapping: true, "NotBootstrapped": true, "ContainerAbsent": true, "RemovingContainer": true,
	}
	before := condition.Set(s.Object.Status.Conditions)
	for _, t := range []string{infrav1.ContainerProvisionedCondition, infrav1.BootstrapExecSucceededCondition} {
		now, then := condition.Set(status.Conditions).Get(t), before.Get(t)
		if now.Status != "True" && !quiet[now.Reason] && (then == nil || then.Reason != now.Reason) {
			list = append(list, loop.Warning(now.Reason, "%s", now.Message))
		}
	}
	if s.provisioned() != isTrue(status.Initialization.Provisioned) {
		list = append(list, loop.Normal("Provisioned", "the node runs and its bootstrap data has succeeded"))
	}
	return list
}
