package machineset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
)

// newMachineGrace is how long a Machine may be without the condition UpToDate before that is worth a word.
const newMachineGrace = 10 * time.Second

// conditions is the table of MS-20.
var conditions = condition.Table[judged]{
	{Type: clusterv1.MachineSetScalingUpCondition, Polarity: condition.Negative, Of: judged.scalingUp},
	{Type: clusterv1.MachineSetScalingDownCondition, Polarity: condition.Negative, Of: judged.scalingDown},
	{Type: clusterv1.MachineSetMachinesReadyCondition, Of: judged.machinesReady},
	{Type: clusterv1.MachineSetMachinesUpToDateCondition, Of: judged.machinesUpToDate},
	{Type: clusterv1.MachineSetRemediatingCondition, Polarity: condition.Negative, Of: judged.remediating},
	{Type: clusterv1.MachineSetDeletingCondition, Polarity: condition.Negative, Of: judged.deleting},
}

// Types of conditions that only exist for their projection to v1beta1.
const (
	created = "MachinesCreated"
	resized = "Resized"
)

// older is what only v1beta1 has (CO-02).
var older = condition.Table[judged]{
	{Type: created, Of: judged.machinesCreated},
	{Type: resized, Of: judged.resized},
}

// legacy is the projection to v1beta1 (CO-02).
var legacy = []condition.Legacy{
	{Type: clusterv1.MachinesCreatedV1Beta1Condition, From: created,
		Severity: func(string) clusterv1.ConditionSeverity { return clusterv1.ConditionSeverityError }},
	{Type: clusterv1.ResizedV1Beta1Condition, From: resized},
	{Type: clusterv1.MachinesReadyV1Beta1Condition, From: clusterv1.MachineSetMachinesReadyCondition},
	{Type: clusterv1.ReadyV1Beta1Condition, From: clusterv1.ReadyCondition},
}

// judged is a snapshot with what became of it.
type judged struct {
	Snapshot
	plan loop.Plan
	out  loop.Outcome
}

// desired is how many Machines there shall be: none of a set that is deleted.
func (j judged) desired() (int, bool) {
	if deleting(j.Snapshot) {
		return 0, true
	}
	return wanted(j.Snapshot)
}

func (j judged) scalingUp() condition.Verdict {
	want, known := j.desired()
	if !known {
		return condition.Unknown(clusterv1.MachineSetScalingUpWaitingForReplicasSetReason, waitingForReplicas)
	}
	have, blocked := len(j.Machines), j.blocked()
	if have >= want {
		if blocked != "" && want > 0 {
			blocked = "Scaling up would be blocked because:\n" + blocked
		} else {
			blocked = ""
		}
		return condition.False(clusterv1.MachineSetNotScalingUpReason, blocked)
	}
	message := fmt.Sprintf("Scaling up from %d to %d replicas", have, want)
	if blocked != "" {
		message += " is blocked because:\n" + blocked
	}
	return condition.TrueBecause(clusterv1.MachineSetScalingUpReason, message)
}

// blocked lists what hinders the creation of Machines.
func (j judged) blocked() string {
	if deleting(j.Snapshot) {
		return ""
	}
	var lines []string
	for _, w := range slices.Concat(j.plan.Wait, hindrances(j.Snapshot)) {
		line := "* " + w.Message
		if w.Reason != waitForCache && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if why := j.notCreated(); why != "" {
		lines = append(lines, "* "+why)
	}
	return joinLines(lines)
}

// notCreated says why Machines could not be created; empty: they could. What a person has to change is said as it is.
func (j judged) notCreated() string {
	a, failed := j.out.Failed.(Create)
	if !failed {
		return ""
	}
	if f := fault.As(j.out.Err); f != nil && f.Kind == fault.Invalid {
		return f.Message
	}
	return notPossible("Machines could not be created", j.out, a.Names)
}

// notPossible says why an action failed, without the names of Machines: those of new ones change each time.
func notPossible(what string, out loop.Outcome, names string) string {
	return what + ": " + strings.Join(kube.Refusals(out.Err, strings.Fields(names)...), "; ") + "; retrying"
}

func (j judged) scalingDown() condition.Verdict {
	want, known := j.desired()
	if !known {
		return condition.Unknown(clusterv1.MachineSetScalingDownWaitingForReplicasSetReason, waitingForReplicas)
	}
	have := len(j.Machines)
	if have <= want {
		return condition.False(clusterv1.MachineSetNotScalingDownReason, "")
	}
	message := fmt.Sprintf("Scaling down from %d to %d replicas", have, want)
	if late := condition.Lingering(j.members(), j.Now); late != "" {
		message += "\n* " + late
	}
	return condition.TrueBecause(clusterv1.MachineSetScalingDownReason, message)
}

func (j judged) members() []condition.Member {
	out := make([]condition.Member, 0, len(j.Machines))
	for _, m := range j.Machines {
		out = append(out, condition.Member{Kind: "Machine", Name: m.Name, Conditions: m.Status.Conditions, Deleted: m.DeletionTimestamp})
	}
	return out
}

func (j judged) machinesReady() condition.Verdict {
	if len(j.Machines) == 0 {
		return condition.True(clusterv1.MachineSetMachinesReadyNoReplicasReason)
	}
	return condition.Aggregate(j.members(), condition.Part{Type: clusterv1.MachineReadyCondition}, condition.Reasons{
		Good: clusterv1.MachineSetMachinesReadyReason, Bad: clusterv1.MachineSetMachinesNotReadyReason,
		Unknown: clusterv1.MachineSetMachinesReadyUnknownReason,
	})
}

func (j judged) machinesUpToDate() condition.Verdict {
	var members []condition.Member
	for _, m := range j.Machines {
		fresh := j.Now.Sub(m.CreationTimestamp.Time) < newMachineGrace
		if of(m.Machine, clusterv1.MachineUpToDateCondition) != nil || !fresh {
			members = append(members, condition.Member{Kind: "Machine", Name: m.Name, Conditions: m.Status.Conditions})
		}
	}
	if len(members) == 0 {
		return condition.True(clusterv1.MachineSetMachinesUpToDateNoReplicasReason)
	}
	return condition.Aggregate(members, condition.Part{Type: clusterv1.MachineUpToDateCondition}, condition.Reasons{
		Good: clusterv1.MachineSetMachinesUpToDateReason, Bad: clusterv1.MachineSetMachinesNotUpToDateReason,
		Unknown: clusterv1.MachineSetMachinesUpToDateUnknownReason,
	})
}

func (j judged) remediating() condition.Verdict {
	var replaced []condition.Member
	var others []string
	for _, m := range j.Machines {
		switch {
		case asked(m.Machine):
			replaced = append(replaced, condition.Member{Kind: "Machine", Name: m.Name, Conditions: m.Status.Conditions})
		case condition.Set(m.Status.Conditions).IsFalse(clusterv1.MachineHealthCheckSucceededCondition):
			others = append(others, m.Name)
		}
	}
	if len(replaced) > 0 {
		v := condition.Aggregate(replaced, condition.Part{Type: clusterv1.MachineOwnerRemediatedCondition}, condition.Reasons{})
		return condition.TrueBecause(clusterv1.MachineSetRemediatingReason, v.Message)
	}
	if len(others) == 0 {
		return condition.False(clusterv1.MachineSetNotRemediatingReason, "")
	}
	return condition.False(clusterv1.MachineSetNotRemediatingReason,
		fmt.Sprintf("%s not healthy, and their replacement is not asked for", machineNames(strings.Join(others, " "))))
}

func (j judged) deleting() condition.Verdict {
	switch {
	case !deleting(j.Snapshot):
		return condition.False(clusterv1.MachineSetNotDeletingReason, "")
	case len(j.Machines) == 0:
		return condition.TrueBecause(clusterv1.MachineSetDeletingReason, "Deletion completed")
	}
	message := fmt.Sprintf("Deleting %d Machines", len(j.Machines))
	if len(j.Machines) == 1 {
		message = "Deleting 1 Machine"
	}
	if late := condition.Lingering(j.members(), j.Now); late != "" {
		message += "\n* " + late
	}
	return condition.TrueBecause(clusterv1.MachineSetDeletingReason, message)
}

func (j judged) machinesCreated() condition.Verdict {
	if why := j.notCreated(); why != "" {
		return condition.False(clusterv1.MachineCreationFailedV1Beta1Reason, why)
	}
	if want, _ := j.desired(); len(j.Machines) < want {
		for _, w := range j.plan.Wait {
			if w.Reason == waitForPreflight {
				return condition.False(clusterv1.PreflightCheckFailedV1Beta1Reason, w.Message)
			}
		}
	}
	return condition.True(created)
}

func (j judged) resized() condition.Verdict {
	want, known := j.desired()
	switch have := len(j.Machines); {
	case known && have < want:
		return condition.False(clusterv1.ScalingUpV1Beta1Reason, fmt.Sprintf("Scaling up to %d replicas (actual %d)", want, have))
	case known && have > want:
		return condition.False(clusterv1.ScalingDownV1Beta1Reason, fmt.Sprintf("Scaling down to %d replicas (actual %d)", want, have))
	}
	return condition.True(resized)
}

func joinLines(lines []string) string { return strings.Join(lines, "\n") }
