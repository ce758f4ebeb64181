package machinedeployment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/loop"
)

// waitingForOwnership is why nothing is known of a rollout while objects are restored.
const waitingForOwnership = "WaitingForOwnership"

// conditions is the table of DP-12; Paused is the driver's.
var conditions = condition.Table[judged]{
	{Type: clusterv1.MachineDeploymentDeletingCondition, Polarity: condition.Negative, Of: judged.deleting},
	{Type: clusterv1.MachineDeploymentMachinesReadyCondition, Of: judged.machinesReady},
	{Type: clusterv1.MachineDeploymentMachinesUpToDateCondition, Of: judged.machinesUpToDate},
	{Type: clusterv1.MachineDeploymentRollingOutCondition, Polarity: condition.Negative, Of: judged.rollingOut},
	{Type: clusterv1.MachineDeploymentScalingUpCondition, Polarity: condition.Negative, Of: judged.scalingUp},
	{Type: clusterv1.MachineDeploymentScalingDownCondition, Polarity: condition.Negative, Of: judged.scalingDown},
	{Type: clusterv1.MachineDeploymentRemediatingCondition, Polarity: condition.Negative, Of: judged.remediating},
	{Type: clusterv1.MachineDeploymentAvailableCondition, Of: judged.available},
}

// legacy is the projection to v1beta1 (CO-02).
func legacy() []condition.Legacy {
	warning := func(string) clusterv1.ConditionSeverity { return clusterv1.ConditionSeverityWarning }
	return []condition.Legacy{
		{Type: clusterv1.ReadyV1Beta1Condition, From: clusterv1.MachineDeploymentAvailableCondition, Severity: warning},
		{Type: clusterv1.MachineDeploymentAvailableV1Beta1Condition, From: clusterv1.MachineDeploymentAvailableCondition, Severity: warning,
			Reason: func(string) string { return clusterv1.WaitingForAvailableMachinesV1Beta1Reason }},
		{Type: clusterv1.MachineSetReadyV1Beta1Condition, From: clusterv1.MachineDeploymentMachinesReadyCondition},
	}
}

// judged is a snapshot with what was counted in it and what is planned.
type judged struct {
	Snapshot
	counts counts
	plan   loop.Plan
}

func (j judged) gone() bool { return !j.Deployment.DeletionTimestamp.IsZero() }

// desired is the number of replicas to come to; none while the deployment is deleted.
func (j judged) desired() int32 {
	if j.gone() {
		return 0
	}
	return deref(j.Deployment.Spec.Replicas)
}

func (j judged) deleting() condition.Verdict {
	if !j.gone() {
		return condition.False(clusterv1.MachineDeploymentNotDeletingReason, "")
	}
	message := waitOf(j.plan, waitingForDeletion)
	if message == "" {
		return condition.TrueBecause(clusterv1.DeletionCompletedReason, "")
	}
	lines := []string{"* " + message}
	if machines := machinesOf(j.Snapshot); len(machines) > 0 {
		var names []string
		for _, m := range machines {
			names = append(names, m.Name)
		}
		lines = append(lines, "* Machines "+condition.Names(names)+" still exist")
	}
	if late := condition.Lingering(j.members(), j.Now); late != "" {
		lines = append(lines, "* "+late)
	}
	return condition.TrueBecause(clusterv1.MachineDeploymentDeletingReason, strings.Join(lines, "\n"))
}

func (j judged) machinesReady() condition.Verdict {
	members := j.members()
	if len(members) == 0 {
		return condition.True(clusterv1.MachineDeploymentMachinesReadyNoReplicasReason)
	}
	return condition.Aggregate(members, condition.Part{Type: clusterv1.MachineReadyCondition}, condition.Reasons{
		Good: clusterv1.MachineDeploymentMachinesReadyReason, Bad: clusterv1.MachineDeploymentMachinesNotReadyReason,
		Unknown: clusterv1.MachineDeploymentMachinesReadyUnknownReason,
	})
}

// machinesUpToDate leaves out Machines that are too new to have been judged.
func (j judged) machinesUpToDate() condition.Verdict {
	var members []condition.Member
	for _, m := range machinesOf(j.Snapshot) {
		set := condition.Set(m.Status.Conditions)
		if set.Get(clusterv1.MachineUpToDateCondition) != nil || j.Now.Sub(m.CreationTimestamp.Time) >= newFor {
			members = append(members, condition.Member{Kind: "Machine", Name: m.Name, Conditions: set})
		}
	}
	if len(members) == 0 {
		return condition.True(clusterv1.MachineDeploymentMachinesUpToDateNoReplicasReason)
	}
	return condition.Aggregate(members, condition.Part{Type: clusterv1.MachineUpToDateCondition}, condition.Reasons{
		Good: clusterv1.MachineDeploymentMachinesUpToDateReason, Bad: clusterv1.MachineDeploymentMachinesNotUpToDateReason,
		Unknown: clusterv1.MachineDeploymentMachinesUpToDateUnknownReason,
	})
}

// rollingOut says how many Machines are not up to date, why, and what holds the rollout up.
func (j judged) rollingOut() condition.Verdict {
	if message := unowned(j.plan); message != "" {
		return condition.Unknown(waitingForOwnership, message)
	}
	if message := waitOf(j.plan, invalidStrategy); message != "" {
		return condition.Unknown(invalidStrategy, message)
	}
	n, why := 0, map[string]bool{}
	for _, m := range j.members() {
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
	if held := waitOf(j.plan, rolloutHeld); held != "" {
		lines = append(lines, "* "+held)
	}
	if isTrue(j.Deployment.Spec.Paused) {
		lines = append(lines, "* The rollout is paused by spec.paused")
	}
	message := strings.Join(lines, "\n")
	if missing(j.Snapshot) == "" { // else it is held, which is said already
		message = bullets(message, hindrances(j.Snapshot))
	}
	return condition.TrueBecause(clusterv1.MachineDeploymentRollingOutReason, message)
}

func (j judged) scalingUp() condition.Verdict {
	if j.Deployment.Spec.Replicas == nil {
		return condition.Unknown(clusterv1.MachineDeploymentScalingUpWaitingForReplicasSetReason, replicasNotSet)
	}
	problem := missing(j.Snapshot)
	have, want := j.counts.replicas, j.desired()
	if have >= want {
		if problem != "" && !j.gone() {
			problem = "Scaling up would be blocked because " + problem
		}
		return condition.False(clusterv1.MachineDeploymentNotScalingUpReason, problem)
	}
	message := fmt.Sprintf("Scaling up from %d to %d replicas", have, want)
	switch {
	case problem != "":
		message += " is blocked because " + problem
	default:
		message = bullets(message, hindrances(j.Snapshot))
	}
	return condition.TrueBecause(clusterv1.MachineDeploymentScalingUpReason, message)
}

func (j judged) scalingDown() condition.Verdict {
	if j.Deployment.Spec.Replicas == nil {
		return condition.Unknown(clusterv1.MachineDeploymentScalingDownWaitingForReplicasSetReason, replicasNotSet)
	}
	have, want := j.counts.replicas, j.desired()
	if have <= want {
		return condition.False(clusterv1.MachineDeploymentNotScalingDownReason, "")
	}
	message := fmt.Sprintf("Scaling down from %d to %d replicas", have, want)
	if late := condition.Lingering(j.members(), j.Now); late != "" {
		message += "\n* " + late
	}
	return condition.TrueBecause(clusterv1.MachineDeploymentScalingDownReason, message)
}

func (j judged) remediating() condition.Verdict {
	var members []condition.Member
	for _, m := range j.members() {
		if m.Conditions.IsFalse(clusterv1.MachineOwnerRemediatedCondition) && m.Conditions.IsFalse(clusterv1.MachineHealthCheckSucceededCondition) {
			members = append(members, m)
		}
	}
	if len(members) == 0 {
		return condition.False(clusterv1.MachineDeploymentNotRemediatingReason, "")
	}
	v := condition.Aggregate(members, condition.Part{Type: clusterv1.MachineOwnerRemediatedCondition}, condition.Reasons{
		Good: clusterv1.MachineDeploymentNotRemediatingReason, Bad: clusterv1.MachineDeploymentRemediatingReason,
		Unknown: clusterv1.MachineDeploymentRemediatingReason,
	})
	return condition.TrueBecause(clusterv1.MachineDeploymentRemediatingReason, v.Message)
}

func (j judged) available() condition.Verdict {
	spec := j.Deployment.Spec
	switch {
	case j.gone():
		return condition.False(clusterv1.MachineDeploymentNotAvailableReason, "Deletion in progress")
	case spec.Replicas == nil:
		return condition.Unknown(clusterv1.MachineDeploymentAvailableWaitingForReplicasSetReason, replicasNotSet)
	}
	if least := deref(spec.Replicas) - maxUnavailable(j.Deployment); j.counts.available < least {
		message := fmt.Sprintf("%d available replicas, at least %d required (spec.replicas is %d)", j.counts.available, least, deref(spec.Replicas))
		if j.counts.replicas < deref(spec.Replicas) {
			message = bullets(message, hindrances(j.Snapshot))
		}
		return condition.False(clusterv1.MachineDeploymentNotAvailableReason, message)
	}
	return condition.True(clusterv1.MachineDeploymentAvailableReason)
}

func (j judged) members() []condition.Member {
	var out []condition.Member
	for _, m := range machinesOf(j.Snapshot) {
		out = append(out, condition.Member{Kind: "Machine", Name: m.Name, Conditions: m.Status.Conditions, Deleted: m.DeletionTimestamp})
	}
	return out
}
