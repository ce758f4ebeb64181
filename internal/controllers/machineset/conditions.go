package machineset

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// conditions is the condition table of a MachineSet, which [report] evaluates after each reconciliation. Types,
// polarities and reasons are defined by Cluster API. Package reconciler adds Paused.
var conditions = condition.Table[conditionInput]{
	{Type: clusterv1.MachineSetScalingUpCondition, Polarity: condition.Negative, Compute: conditionInput.scalingUp},
	{Type: clusterv1.MachineSetScalingDownCondition, Polarity: condition.Negative, Compute: conditionInput.scalingDown},
	{Type: clusterv1.MachineSetMachinesReadyCondition, Compute: func(j conditionInput) condition.Result { return j.machines.Ready() }},
	{Type: clusterv1.MachineSetMachinesUpToDateCondition, Compute: func(j conditionInput) condition.Result { return j.machines.UpToDate(j.Now) }},
	{Type: clusterv1.MachineSetRemediatingCondition, Polarity: condition.Negative, Compute: func(j conditionInput) condition.Result { return j.machines.RemediatingOrUnhealthy() }},
	{Type: clusterv1.MachineSetDeletingCondition, Polarity: condition.Negative, Compute: conditionInput.deleting},
}

// Types of conditions that exist only for the v1beta1 projection.
const (
	created = "MachinesCreated"
	resized = "Resized"
)

// v1beta1Only are the conditions that only v1beta1 has. deprecated (status.go) evaluates them.
var v1beta1Only = condition.Table[conditionInput]{
	{Type: created, Compute: conditionInput.machinesCreated},
	{Type: resized, Compute: conditionInput.resized},
}

// v1beta1 has the rows of the conditions in status.deprecated.v1beta1. deprecated (status.go) passes them to
// condition.Project.
var v1beta1 = []condition.V1Beta1Row{
	{Type: clusterv1.MachinesCreatedV1Beta1Condition, From: created,
		Severity: func(string) clusterv1.ConditionSeverity { return clusterv1.ConditionSeverityError }},
	{Type: clusterv1.ResizedV1Beta1Condition, From: resized},
	{Type: clusterv1.MachinesReadyV1Beta1Condition, From: clusterv1.MachineSetMachinesReadyCondition},
	{Type: clusterv1.ReadyV1Beta1Condition, From: clusterv1.ReadyCondition},
}

// conditionInput is the input of the conditions: the snapshot, the plan and its outcome. [report] fills it.
type conditionInput struct {
	snapshot
	machines machines.List
	plan     reconciler.Plan
	out      reconciler.Outcome
}

// desired returns the desired number of Machines, which is 0 for a MachineSet that is being deleted. Machines that
// were transferred to it and are not counted yet are neither surplus nor missing.
func (j conditionInput) desired() (int, bool) {
	if isDeleting(j.snapshot) {
		return 0, true
	}
	want, known := desired(j.snapshot)
	return want + len(j.Machines) - len(counted(j.snapshot)), known
}

func (j conditionInput) scalingUp() condition.Result {
	want, known := j.desired()
	if !known {
		return condition.Unknown(clusterv1.MachineSetScalingUpWaitingForReplicasSetReason, waitingForReplicas)
	}
	return j.machines.ScalingUp(want, j.blockers())
}

// blockers returns why no Machines can be created.
func (j conditionInput) blockers() []string {
	if isDeleting(j.snapshot) {
		return nil
	}
	var out []string
	for _, w := range slices.Concat(j.plan.Waits, creationBlockers(j.snapshot)) {
		if w.Reason != waitForCache && w.Reason != waitForMove && w.Reason != waitForUpdate && !slices.Contains(out, w.Message) {
			out = append(out, w.Message)
		}
	}
	if failure := machines.CreationFailure(j.out); failure != "" {
		out = append(out, failure)
	}
	return out
}

func (j conditionInput) scalingDown() condition.Result {
	want, known := j.desired()
	if !known {
		return condition.Unknown(clusterv1.MachineSetScalingDownWaitingForReplicasSetReason, waitingForReplicas)
	}
	v := j.machines.ScalingDown(want, j.Now)
	for _, w := range j.plan.Waits {
		if v.Status == metav1.ConditionTrue && (w.Reason == waitForMove || w.Reason == waitForUpdate) {
			v.Message += "\n* " + w.Message
		}
	}
	return v
}

func (j conditionInput) deleting() condition.Result {
	if !isDeleting(j.snapshot) {
		return condition.False(clusterv1.MachineSetNotDeletingReason, "")
	}
	return j.machines.Deleting(j.Now)
}

func (j conditionInput) machinesCreated() condition.Result {
	if why := machines.CreationFailure(j.out); why != "" {
		return condition.False(clusterv1.MachineCreationFailedV1Beta1Reason, why)
	}
	if want, _ := j.desired(); len(j.machines) < want {
		for _, w := range j.plan.Waits {
			if w.Reason == waitForPreflight {
				return condition.False(clusterv1.PreflightCheckFailedV1Beta1Reason, w.Message)
			}
		}
	}
	return condition.True(created)
}

func (j conditionInput) resized() condition.Result {
	if want, known := j.desired(); known {
		return j.machines.Resized(want)
	}
	return condition.True(resized)
}
