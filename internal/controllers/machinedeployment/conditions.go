package machinedeployment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// waitingForOwnership is the reason of an unknown rollout state while objects are being restored.
const waitingForOwnership = "WaitingForOwnership"

// conditions is the condition table of a MachineDeployment, which [report] evaluates after each reconciliation. Types,
// polarities and reasons are defined by Cluster API, except for the reasons that Slipway declares. Package reconciler
// adds Paused.
var conditions = condition.Table[conditionInput]{
	{Type: clusterv1.MachineDeploymentDeletingCondition, Polarity: condition.Negative, Compute: conditionInput.deleting},
	{Type: clusterv1.MachineDeploymentMachinesReadyCondition, Compute: func(j conditionInput) condition.Result { return j.machines.Ready() }},
	{Type: clusterv1.MachineDeploymentMachinesUpToDateCondition, Compute: func(j conditionInput) condition.Result { return j.machines.UpToDate(j.Now) }},
	{Type: clusterv1.MachineDeploymentRollingOutCondition, Polarity: condition.Negative, Compute: conditionInput.rollingOut},
	{Type: clusterv1.MachineDeploymentScalingUpCondition, Polarity: condition.Negative, Compute: conditionInput.scalingUp},
	{Type: clusterv1.MachineDeploymentScalingDownCondition, Polarity: condition.Negative, Compute: conditionInput.scalingDown},
	{Type: clusterv1.MachineDeploymentRemediatingCondition, Polarity: condition.Negative, Compute: func(j conditionInput) condition.Result { return j.machines.Remediating() }},
	{Type: clusterv1.MachineDeploymentAvailableCondition, Compute: conditionInput.available},
}

// v1beta1 returns the rows of the conditions in status.deprecated.v1beta1. deprecated (status.go) passes them to
// condition.Project.
func v1beta1() []condition.V1Beta1Row {
	warning := func(string) clusterv1.ConditionSeverity { return clusterv1.ConditionSeverityWarning }
	return []condition.V1Beta1Row{
		{Type: clusterv1.ReadyV1Beta1Condition, From: clusterv1.MachineDeploymentAvailableCondition, Severity: warning},
		{Type: clusterv1.MachineDeploymentAvailableV1Beta1Condition, From: clusterv1.MachineDeploymentAvailableCondition, Severity: warning,
			Reason: func(string) string { return clusterv1.WaitingForAvailableMachinesV1Beta1Reason }},
		{Type: clusterv1.MachineSetReadyV1Beta1Condition, From: clusterv1.MachineDeploymentMachinesReadyCondition},
	}
}

// conditionInput is the input of the conditions: the snapshot, the Machines and the plan. [report] fills it.
type conditionInput struct {
	snapshot
	machines machines.List
	counts   machines.ReplicaCounts
	plan     reconciler.Plan
}

func (j conditionInput) isDeleting() bool { return !j.Deployment.DeletionTimestamp.IsZero() }

// desired returns the desired number of replicas, or 0 while the deployment is being deleted.
func (j conditionInput) desired() int32 {
	if j.isDeleting() {
		return 0
	}
	return ptr.Deref(j.Deployment.Spec.Replicas, 0)
}

func (j conditionInput) deleting() condition.Result {
	if !j.isDeleting() {
		return condition.False(clusterv1.MachineDeploymentNotDeletingReason, "")
	}
	message := waitMessage(j.plan, waitingForDeletion)
	if message == "" {
		return condition.TrueBecause(clusterv1.DeletionCompletedReason, "")
	}
	lines := []string{"* " + message}
	if len(j.machines) > 0 {
		lines = append(lines, "* Machines "+condition.Names(j.machines.Names())+" still exist")
	}
	return condition.TrueBecause(clusterv1.MachineDeploymentDeletingReason, j.machines.WithLingering(strings.Join(lines, "\n"), j.Now))
}

// rollingOut reports how many Machines are not up to date, why, and what blocks the rollout.
func (j conditionInput) rollingOut() condition.Result {
	if message := ownershipWait(j.plan); message != "" {
		return condition.Unknown(waitingForOwnership, message)
	}
	if message := waitMessage(j.plan, invalidStrategy); message != "" {
		return condition.Unknown(invalidStrategy, message)
	}
	n, why := 0, map[string]bool{}
	for _, m := range j.machines.Members() {
		c := m.Conditions.Get(clusterv1.MachineUpToDateCondition)
		if c == nil || !m.Conditions.IsFalse(clusterv1.MachineUpToDateCondition) {
			continue
		}
		n++
		for _, line := range strings.Split(c.Message, "\n") {
			if line = strings.TrimPrefix(strings.TrimSpace(line), "* "); line != "" {
				why[line] = true
			}
		}
	}
	if n == 0 {
		return condition.False(clusterv1.MachineDeploymentNotRollingOutReason, "")
	}
	lines := []string{fmt.Sprintf("Rolling out %d not up-to-date replicas", n)}
	for _, line := range slices.Sorted(maps.Keys(why)) {
		lines = append(lines, "* "+line)
	}
	for _, line := range inPlaceLines(j.snapshot) {
		lines = append(lines, "* "+line)
	}
	for _, reason := range []string{rolloutHeld, inPlaceUnknown} {
		if held := waitMessage(j.plan, reason); held != "" {
			lines = append(lines, "* "+held)
		}
	}
	if ptr.Deref(j.Deployment.Spec.Paused, false) {
		lines = append(lines, "* The rollout is paused by spec.paused")
	}
	message := strings.Join(lines, "\n")
	if scalingProblem(j.snapshot) == "" { // otherwise the rollout is blocked, and the message already explains why
		message = bullets(message, creationBlockers(j.snapshot))
	}
	return condition.TrueBecause(clusterv1.MachineDeploymentRollingOutReason, message)
}

func (j conditionInput) scalingUp() condition.Result {
	if j.Deployment.Spec.Replicas == nil {
		return condition.Unknown(clusterv1.MachineDeploymentScalingUpWaitingForReplicasSetReason, replicasNotSet)
	}
	problem := scalingProblem(j.snapshot)
	have, want := j.counts.Replicas, j.desired()
	if have >= want {
		if problem != "" && !j.isDeleting() {
			problem = "Scaling up would be blocked because " + problem
		}
		return condition.False(clusterv1.MachineDeploymentNotScalingUpReason, problem)
	}
	message := fmt.Sprintf("Scaling up from %d to %d replicas", have, want)
	switch {
	case problem != "":
		message += " is blocked because " + problem
	default:
		message = bullets(message, creationBlockers(j.snapshot))
	}
	return condition.TrueBecause(clusterv1.MachineDeploymentScalingUpReason, message)
}

func (j conditionInput) scalingDown() condition.Result {
	if j.Deployment.Spec.Replicas == nil {
		return condition.Unknown(clusterv1.MachineDeploymentScalingDownWaitingForReplicasSetReason, replicasNotSet)
	}
	return j.machines.ScalingDown(int(j.desired()), j.Now)
}

func (j conditionInput) available() condition.Result {
	replicas := j.Deployment.Spec.Replicas
	switch {
	case j.isDeleting():
		return condition.False(clusterv1.MachineDeploymentNotAvailableReason, "Deletion in progress")
	case replicas == nil:
		return condition.Unknown(clusterv1.MachineDeploymentAvailableWaitingForReplicasSetReason, replicasNotSet)
	}
	if least := *replicas - maxUnavailable(j.Deployment); j.counts.Available < least {
		message := fmt.Sprintf("%d available replicas, at least %d required (spec.replicas is %d)", j.counts.Available, least, *replicas)
		if j.counts.Replicas < *replicas {
			message = bullets(message, creationBlockers(j.snapshot))
		}
		return condition.False(clusterv1.MachineDeploymentNotAvailableReason, message)
	}
	return condition.True(clusterv1.MachineDeploymentAvailableReason)
}
