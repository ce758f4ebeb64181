package machinepool

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// conditionInput is a snapshot with the plan and its outcome, from which the conditions are computed.
type conditionInput struct {
	snapshot
	plan    reconciler.Plan
	outcome reconciler.Outcome
}

// conditions are the conditions of a LocalMachinePool that the controller writes, in the order of their evaluation.
// Cluster API defines both types.
var conditions = condition.Table[conditionInput]{
	{Type: clusterv1.DeletingCondition, Polarity: condition.Negative, Compute: conditionInput.deleting},
	{Type: clusterv1.ReadyCondition, Compute: conditionInput.ready},
}

func (j conditionInput) deleting() condition.Result {
	if j.Object.DeletionTimestamp.IsZero() {
		return condition.False(clusterv1.NotDeletingReason, "")
	}
	return condition.TrueBecause(clusterv1.DeletingReason, infrastructure.WaitMessages(j.plan))
}

// ready evaluates the condition Ready, which is true if the desired number of machines is ready. The message aggregates
// the conditions of the other machines.
func (j conditionInput) ready() condition.Result {
	if !j.Object.DeletionTimestamp.IsZero() {
		return condition.False(clusterv1.DeletingReason, infrastructure.WaitMessages(j.plan))
	}
	if why := fault.As(j.outcome.Err); why != nil {
		return condition.False(why.Reason, why.Message)
	}
	if j.Pool == nil {
		return condition.False(reasonOwner, infrastructure.WaitMessages(j.plan))
	}
	n, unknown := 0, false
	var others []condition.AggregateMember
	for _, m := range j.Members {
		switch c := condition.Set(m.Local.Status.Conditions).Get(clusterv1.ReadyCondition); {
		case m.ready() && !m.deleting():
			n++
		default:
			unknown = unknown || c != nil && c.Status == "Unknown"
			others = append(others, condition.AggregateMember{Kind: localMachineKind, Name: m.Local.Name, Conditions: m.Local.Status.Conditions})
		}
	}
	if n >= j.desired() {
		return condition.True(clusterv1.ReadyReason)
	}
	message := fmt.Sprintf("%d of %d machines are ready", n, j.desired())
	if text := infrastructure.WaitMessages(j.plan); text != "" {
		message += "\n" + text
	}
	if len(others) > 0 {
		all := condition.Aggregate(others, condition.Part{Type: clusterv1.ReadyCondition}, condition.Reasons{Info: "a", Issue: "b", Unknown: "c"})
		message = strings.TrimRight(message+"\n"+all.Message, "\n")
	}
	if unknown {
		return condition.Unknown(clusterv1.ReadyUnknownReason, message)
	}
	return condition.False(clusterv1.NotReadyReason, message)
}

// report computes the status and the events. Package reconciler calls it after the actions. It is pure.
func report(s snapshot, p reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	status := infrav1.LocalMachinePoolStatus{
		ObservedGeneration:        s.Object.Generation,
		Conditions:                conditions.Evaluate(conditionInput{s, p, out}, reconciler.EvaluateOptionsFor(s.Object, s.Now)),
		Initialization:            s.Object.Status.Initialization,
		Ready:                     s.Object.Status.Ready,
		InfrastructureMachineKind: localMachineKind,
		Capacity:                  s.NodeCapacity.Capacity,
		NodeInfo:                  s.NodeCapacity.NodeInfo,
	}
	replicas, provisioned := int32(0), 0
	for _, m := range s.Members {
		if m.lost() {
			continue
		}
		replicas++
		if m.provisioned() {
			provisioned++
		}
		status.Instances = append(status.Instances, instance(m))
	}
	if len(s.unrestoredIDs()) > 0 && s.Object.DeletionTimestamp.IsZero() { // the number of replicas is unknown until then
		return reconciler.Report{Status: status, Events: events(out)}
	}
	status.Replicas = &replicas
	if s.Pool != nil && hasEnoughMachines(s, provisioned, int(replicas)) { // sets both fields
		status.Initialization.Provisioned, status.Ready = ptr.To(true), ptr.To(true)
	}
	return reconciler.Report{Status: status, Events: events(out)}
}

// hasEnoughMachines reports whether the desired number of machines has been provisioned. If zero machines are desired,
// none may exist.
func hasEnoughMachines(s snapshot, provisioned, replicas int) bool {
	return provisioned >= s.desired() && (s.desired() > 0 || replicas == 0)
}

// instance returns the status of one machine.
func instance(m poolMember) infrav1.LocalMachinePoolInstance {
	return infrav1.LocalMachinePoolInstance{
		Name: m.Local.Name, InstanceID: m.Local.Status.InstanceID, ProviderID: m.Local.Spec.ProviderID,
		Addresses: m.Local.Status.Addresses, FailureDomain: m.Local.Status.FailureDomain,
		Version: m.Local.Status.NodeVersion, Ready: ptr.To(m.ready()),
	}
}

func events(out reconciler.Outcome) []reconciler.Event {
	var list []reconciler.Event
	for _, a := range out.Done {
		switch a := a.(type) {
		case createMachine:
			list = append(list, reconciler.Normal("MachineCreated", "Created LocalMachine %s: %s", a.Name, a.Why))
		case removeMachine:
			list = append(list, reconciler.Normal("MachineRemoved", "Deleting LocalMachine %s: %s", a.Name, a.Why))
		}
	}
	return list
}
