package machinepool

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/version"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Reasons and waits for which the API module has no constant. deletion.go and restore.go use them in their waits.
const (
	waitingForInfrastructure = "WaitingForInfrastructureDeletion"
	waitingForMachines       = "WaitingForMachinesDeletion"
	waitingForBootstrap      = "WaitingForBootstrapDeletion"
	deletingNodes            = "DeletingNodes"
	waitingForRestore        = "WaitingForMachines"
	dataSecretProvided       = "DataSecretProvided"
	notRemediating           = clusterv1.NotRemediatingReason
)

// waitingForReplicas is the message of the conditions that count replicas.
const waitingForReplicas = "Waiting for spec.replicas to be set; until then the desired number of replicas is unknown"

// conditions are the conditions that the controller writes; [report] evaluates them after each reconciliation. Cluster
// API has no specific constants for MachinePools, so the general condition types and reasons are used.
var conditions = condition.Table[conditionInput]{
	{Type: clusterv1.DeletingCondition, Polarity: condition.Negative, Compute: conditionInput.deleting},
	{Type: clusterv1.BootstrapConfigReadyCondition, Compute: conditionInput.bootstrapConfigReady},
	{Type: clusterv1.InfrastructureReadyCondition, Compute: conditionInput.infrastructureReady},
	{Type: clusterv1.MachinesReadyCondition, Compute: conditionInput.machinesReady},
	{Type: clusterv1.MachinesUpToDateCondition, Compute: conditionInput.machinesUpToDate},
	{Type: clusterv1.ScalingUpCondition, Polarity: condition.Negative, Compute: conditionInput.scalingUp},
	{Type: clusterv1.ScalingDownCondition, Polarity: condition.Negative, Compute: conditionInput.scalingDown},
	{Type: clusterv1.RemediatingCondition, Polarity: condition.Negative, Compute: conditionInput.remediating},
	{Type: clusterv1.AvailableCondition, Summarize: conditionInput.available},
}

// legacy has the rows of the conditions in status.deprecated.v1beta1. deprecated (status.go) passes them to
// condition.Project.
var legacy = []condition.V1Beta1Row{
	{Type: clusterv1.ReadyV1Beta1Condition, From: clusterv1.AvailableCondition},
	bootstrapConfig.Legacy(clusterv1.BootstrapReadyV1Beta1Condition, clusterv1.WaitingForDataSecretFallbackV1Beta1Reason),
	infrastructure.Legacy(clusterv1.InfrastructureReadyV1Beta1Condition, clusterv1.WaitingForInfrastructureFallbackV1Beta1Reason),
	{Type: clusterv1.ReplicasReadyV1Beta1Condition, From: clusterv1.MachinesReadyCondition,
		Reason: func(string) string { return clusterv1.WaitingForReplicasReadyV1Beta1Reason }},
}

// conditionInput is the input of the conditions: the snapshot, its counters and the plan. [report] fills it.
type conditionInput struct {
	snapshot
	counts counts
	plan   reconciler.Plan
}

func (j conditionInput) deleting() condition.Result {
	if j.Pool.DeletionTimestamp.IsZero() {
		return condition.False(clusterv1.NotDeletingReason, "")
	}
	message := j.plan.Stage.Message
	if message == "" && j.plan.Stage.Order == nodeStage {
		message = "Deleting the Nodes of the pool"
	}
	return condition.TrueBecause(j.plan.Stage.Reason, message)
}

func (j conditionInput) bootstrapConfigReady() condition.Result {
	l := j.bootstrap()
	if l.Presence() == contract.NotSet {
		return condition.True(dataSecretProvided)
	}
	return l.ComputeCondition()
}

func (j conditionInput) infrastructureReady() condition.Result { return j.infra().ComputeCondition() }

func (j conditionInput) machinesReady() condition.Result {
	reasons := condition.Reasons{Info: clusterv1.ReadyReason, Issue: clusterv1.NotReadyReason, Unknown: clusterv1.ReadyUnknownReason}
	if j.counts.replicas == 0 && len(j.Machines) == 0 {
		return condition.True(clusterv1.NoReplicasReason)
	}
	if hasMachines(j.snapshot) {
		return condition.Aggregate(j.members(), condition.Part{Type: clusterv1.ReadyCondition}, reasons)
	}
	if !j.Nodes.Known {
		return condition.Unknown(clusterv1.ReadyUnknownReason, j.Nodes.Problem)
	}
	problems := lines(append(j.listProblems(), nonEmpty(j.unreadyNodes())...))
	if j.counts.ready < j.counts.replicas {
		return condition.False(clusterv1.NotReadyReason, cmp.Or(problems, fmt.Sprintf("%d of %d Nodes are ready", j.counts.ready, j.counts.replicas)))
	}
	return condition.TrueBecause(clusterv1.ReadyReason, problems)
}

func (j conditionInput) machinesUpToDate() condition.Result {
	if j.counts.replicas == 0 && len(j.Machines) == 0 {
		return condition.True(clusterv1.NoReplicasReason)
	}
	if !hasMachines(j.snapshot) {
		return j.nodesUpToDate()
	}
	var members []condition.AggregateMember
	for _, m := range j.Machines {
		v := upToDate(j.snapshot, m)
		members = append(members, condition.AggregateMember{Kind: "Machine", Name: m.Name, Conditions: condition.Set{
			{Type: clusterv1.MachineUpToDateCondition, Status: v.Status, Reason: v.Reason, Message: v.Message}}})
	}
	return condition.Aggregate(members, condition.Part{Type: clusterv1.MachineUpToDateCondition}, condition.Reasons{
		Info: clusterv1.UpToDateReason, Issue: clusterv1.NotUpToDateReason, Unknown: clusterv1.UpToDateUnknownReason,
	})
}

func (j conditionInput) nodesUpToDate() condition.Result {
	if !j.Nodes.Known {
		return condition.Unknown(clusterv1.UpToDateUnknownReason, j.Nodes.Problem)
	}
	if j.counts.upToDate < j.counts.replicas {
		problems := lines(append(j.listProblems(), nonEmpty(j.outdatedNodes())...))
		return condition.False(clusterv1.NotUpToDateReason,
			cmp.Or(problems, fmt.Sprintf("%d of %d Nodes are of version %s", j.counts.upToDate, j.counts.replicas, j.Pool.Spec.Template.Spec.Version)))
	}
	return condition.True(clusterv1.UpToDateReason)
}

// upToDate returns whether a Machine is up to date, which means that it runs the version of the pool.
func upToDate(s snapshot, m clusterv1.Machine) condition.Result {
	want, have := s.Pool.Spec.Template.Spec.Version, kubeletVersion(s, m)
	if have == "" {
		have = m.Spec.Version
	}
	if want != "" && !version.Runs(have, want) {
		return condition.False(clusterv1.MachineNotUpToDateReason, fmt.Sprintf("* Version %s, %s required", have, want))
	}
	return condition.True(clusterv1.MachineUpToDateReason)
}

func (j conditionInput) scalingUp() condition.Result {
	if j.Pool.Spec.Replicas == nil {
		return condition.Unknown(clusterv1.WaitingForReplicasSetReason, waitingForReplicas)
	}
	if denied := deniedReplicas(j.snapshot); denied != "" && j.Pool.DeletionTimestamp.IsZero() {
		return condition.TrueBecause(clusterv1.ScalingUpReason, denied)
	}
	if have, want := j.counts.replicas, j.desired(); have < want {
		return condition.TrueBecause(clusterv1.ScalingUpReason, fmt.Sprintf("Scaling up from %d to %d replicas", have, want))
	}
	return condition.False(clusterv1.NotScalingUpReason, "")
}

func (j conditionInput) scalingDown() condition.Result {
	if j.Pool.Spec.Replicas == nil {
		return condition.Unknown(clusterv1.WaitingForReplicasSetReason, waitingForReplicas)
	}
	if have, want := j.counts.replicas, j.desired(); have > want {
		return condition.TrueBecause(clusterv1.ScalingDownReason, fmt.Sprintf("Scaling down from %d to %d replicas", have, want))
	}
	return condition.False(clusterv1.NotScalingDownReason, "")
}

// desired returns the desired number of replicas, or 0 while the pool is being deleted.
func (j conditionInput) desired() int32 {
	if !j.Pool.DeletionTimestamp.IsZero() {
		return 0
	}
	return ptr.Deref(j.Pool.Spec.Replicas, 0)
}

func (j conditionInput) remediating() condition.Result {
	var members []condition.AggregateMember
	for _, m := range j.members() {
		if m.Conditions.IsFalse(clusterv1.MachineOwnerRemediatedCondition) {
			members = append(members, m)
		}
	}
	if len(members) == 0 {
		return condition.False(notRemediating, "")
	}
	v := condition.Aggregate(members, condition.Part{Type: clusterv1.MachineOwnerRemediatedCondition},
		condition.Reasons{Info: notRemediating, Issue: clusterv1.RemediatingReason, Unknown: clusterv1.RemediatingReason})
	return condition.TrueBecause(clusterv1.RemediatingReason, v.Message)
}

func (j conditionInput) available(set condition.Set) condition.Result {
	switch {
	case !j.Pool.DeletionTimestamp.IsZero():
		return condition.False(clusterv1.NotAvailableReason, "Deletion in progress")
	case j.Cluster == nil:
		return condition.False(clusterv1.NotAvailableReason,
			fmt.Sprintf("Cluster %s does not exist: create it, or delete MachinePool %s", j.Pool.Spec.ClusterName, j.Pool.Name))
	case j.Pool.Spec.Replicas == nil:
		return condition.Unknown(clusterv1.WaitingForReplicasSetReason, waitingForReplicas)
	case !set.IsTrue(clusterv1.InfrastructureReadyCondition):
		return condition.Summarize(set, condition.Reasons{
			Info: clusterv1.AvailableReason, Issue: clusterv1.NotAvailableReason, Unknown: clusterv1.AvailableUnknownReason,
		}, condition.Part{Type: clusterv1.BootstrapConfigReadyCondition}, condition.Part{Type: clusterv1.InfrastructureReadyCondition})
	case j.counts.available < j.desired():
		message := fmt.Sprintf("%d available replicas, at least %d required", j.counts.available, j.desired())
		if c := set.Get(clusterv1.BootstrapConfigReadyCondition); c != nil && c.Status != metav1.ConditionTrue && c.Message != "" {
			message = c.Message + "\n" + message
		}
		return condition.False(clusterv1.NotAvailableReason, message)
	}
	return condition.True(clusterv1.AvailableReason)
}

func (j conditionInput) members() []condition.AggregateMember {
	var out []condition.AggregateMember
	for _, m := range j.Machines {
		out = append(out, condition.AggregateMember{Kind: "Machine", Name: m.Name, Conditions: m.Status.Conditions})
	}
	return out
}

// conditionOf returns a condition of a Machine. decideMachine compares UpToDate with it.
func conditionOf(m clusterv1.Machine, conditionType string) *metav1.Condition {
	return condition.Set(m.Status.Conditions).Get(conditionType)
}

// nodeReady reports whether a Node is ready, for the watch of Nodes, the counters and the messages.
func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
