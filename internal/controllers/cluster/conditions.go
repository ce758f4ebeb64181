package cluster

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reference"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// controlPlaneDeleted is the reason of RemoteConnectionProbe while the control plane is deleted with its Cluster.
const controlPlaneDeleted = "ControlPlaneDeleted"

// conditions are the conditions that the controller writes, in the order of their evaluation; [report] evaluates them
// after each reconciliation. Types, polarities and reasons are defined by Cluster API, except for the reasons that this
// package declares.
var conditions = condition.Table[conditionInput]{
	{Type: clusterv1.ClusterDeletingCondition, Polarity: condition.Negative, Compute: conditionInput.deleting},
	{Type: clusterv1.ClusterInfrastructureReadyCondition, Compute: conditionInput.infrastructureReady},
	{Type: clusterv1.ClusterControlPlaneInitializedCondition, Compute: conditionInput.controlPlaneInitialized},
	{Type: clusterv1.ClusterControlPlaneAvailableCondition, Compute: conditionInput.controlPlaneAvailable},
	{Type: clusterv1.ClusterControlPlaneMachinesReadyCondition, Compute: func(j conditionInput) condition.Result { return j.machinesReady(true) }},
	{Type: clusterv1.ClusterControlPlaneMachinesUpToDateCondition, Compute: func(j conditionInput) condition.Result { return j.machinesUpToDate(true) }},
	{Type: clusterv1.ClusterWorkersAvailableCondition, Compute: conditionInput.workersAvailable},
	{Type: clusterv1.ClusterWorkerMachinesReadyCondition, Compute: func(j conditionInput) condition.Result { return j.machinesReady(false) }},
	{Type: clusterv1.ClusterWorkerMachinesUpToDateCondition, Compute: func(j conditionInput) condition.Result { return j.machinesUpToDate(false) }},
	{Type: clusterv1.ClusterRemoteConnectionProbeCondition, Compute: conditionInput.remoteConnectionProbe},
	{Type: clusterv1.ClusterRollingOutCondition, Polarity: condition.Negative, Compute: conditionInput.rollingOut},
	{Type: clusterv1.ClusterScalingUpCondition, Polarity: condition.Negative, Compute: conditionInput.scalingUp},
	{Type: clusterv1.ClusterScalingDownCondition, Polarity: condition.Negative, Compute: conditionInput.scalingDown},
	{Type: clusterv1.ClusterRemediatingCondition, Polarity: condition.Negative, Compute: conditionInput.remediating},
	{Type: clusterv1.ClusterAvailableCondition, Summarize: conditionInput.available},
}

// conditionInput is the input of the conditions: the snapshot, the plan, its outcome and the resulting initialization
// status. [report] fills it.
type conditionInput struct {
	snapshot
	plan    reconciler.Plan
	out     reconciler.Outcome
	reached clusterv1.ClusterInitializationStatus
}

func (j conditionInput) deleting() condition.Result {
	if !deleting(j.snapshot) {
		return condition.False(clusterv1.ClusterNotDeletingReason, "")
	}
	if kind := fault.KindOf(j.out.Err); j.out.Err != nil && kind != fault.Conflict && kind != fault.Unreachable {
		return condition.TrueBecause(clusterv1.ClusterDeletingInternalErrorReason, fmt.Sprintf("Could not %s; retrying", j.out.Failed))
	}
	return condition.TrueBecause(j.plan.Stage.Reason, j.plan.Stage.Message)
}

func (j conditionInput) infrastructureReady() condition.Result { return j.mirror(j.infra()) }

func (j conditionInput) controlPlaneAvailable() condition.Result {
	if message := unsupportedMessage(j.snapshot); message != "" {
		return condition.False(noController, message)
	}
	return j.mirror(j.control())
}

// mirror returns the mirrored condition of a provider object. The topology may not have created the object yet.
func (j conditionInput) mirror(l reference.Link) condition.Result {
	if l.Presence() == contract.NotSet && j.Cluster.Spec.Topology.IsDefined() {
		return condition.False(clusterv1.ObjectDoesNotExistReason, "Waiting for the topology of the Cluster to be reconciled")
	}
	return l.ComputeCondition()
}

func (j conditionInput) controlPlaneInitialized() condition.Result {
	l := j.control()
	problem := l.Problem()
	switch {
	case ptr.Deref(j.reached.ControlPlaneInitialized, false):
		return condition.True(clusterv1.ClusterControlPlaneInitializedReason)
	case problem != "":
		return condition.Unknown(clusterv1.ClusterControlPlaneInitializedInternalErrorReason, problem)
	case l.Presence() == contract.NotSet:
		return condition.False(clusterv1.ClusterControlPlaneNotInitializedReason, "Waiting for the first control plane Machine to have its status.nodeRef set")
	}
	if message := unsupportedMessage(j.snapshot); message != "" {
		return condition.False(noController, message)
	}
	return condition.False(clusterv1.ClusterControlPlaneNotInitializedReason, "Control plane not yet initialized")
}

func (j conditionInput) workersAvailable() condition.Result {
	if len(j.Deployments)+len(j.Pools) == 0 {
		return condition.True(clusterv1.ClusterWorkersAvailableNoWorkersReason)
	}
	reasons := condition.Reasons{Info: clusterv1.AvailableReason, Issue: clusterv1.NotAvailableReason, Unknown: clusterv1.AvailableUnknownReason}
	part := condition.Part{Type: clusterv1.AvailableCondition}
	return combineVerdicts(reasons, condition.Positive,
		condition.Aggregate(j.deploymentMembers(), part, reasons), condition.Aggregate(j.poolMembers(), part, reasons))
}

func (j conditionInput) machinesReady(controlPlane bool) condition.Result {
	machines := j.machines(controlPlane)
	if len(machines) == 0 {
		return condition.True(clusterv1.NoReplicasReason)
	}
	return condition.Aggregate(members(machines), condition.Part{Type: clusterv1.MachineReadyCondition},
		condition.Reasons{Info: clusterv1.ReadyReason, Issue: clusterv1.NotReadyReason, Unknown: clusterv1.ReadyUnknownReason})
}

func (j conditionInput) machinesUpToDate(controlPlane bool) condition.Result {
	old := j.machinesThat(func(m *clusterv1.Machine) bool {
		return isControlPlane(m) == controlPlane && !withinGracePeriod(j.snapshot, m)
	})
	if len(old) == 0 {
		return condition.True(clusterv1.NoReplicasReason)
	}
	return condition.Aggregate(members(old), condition.Part{Type: clusterv1.MachineUpToDateCondition},
		condition.Reasons{Info: clusterv1.UpToDateReason, Issue: clusterv1.NotUpToDateReason, Unknown: clusterv1.UpToDateUnknownReason})
}

// withinGracePeriod reports whether a Machine is so new that it may lack an UpToDate condition. Decide rechecks the
// Cluster at the end of this time.
func withinGracePeriod(s snapshot, m *clusterv1.Machine) bool {
	return condition.Set(m.Status.Conditions).Get(clusterv1.MachineUpToDateCondition) == nil &&
		s.Now.Sub(m.CreationTimestamp.Time) < upToDateGrace
}

func (j conditionInput) rollingOut() condition.Result {
	reasons := condition.Reasons{
		Info: clusterv1.ClusterNotRollingOutReason, Issue: clusterv1.ClusterRollingOutReason, Unknown: clusterv1.ClusterRollingOutUnknownReason,
	}
	return j.aggregateReplicaCondition(clusterv1.RollingOutCondition, reasons, nil)
}

func (j conditionInput) scalingUp() condition.Result {
	reasons := condition.Reasons{
		Info: clusterv1.ClusterNotScalingUpReason, Issue: clusterv1.ClusterScalingUpReason, Unknown: clusterv1.ClusterScalingUpUnknownReason,
	}
	return j.aggregateReplicaCondition(clusterv1.ScalingUpCondition, reasons, j.setMembers())
}

func (j conditionInput) scalingDown() condition.Result {
	reasons := condition.Reasons{
		Info: clusterv1.ClusterNotScalingDownReason, Issue: clusterv1.ClusterScalingDownReason, Unknown: clusterv1.ClusterScalingDownUnknownReason,
	}
	return j.aggregateReplicaCondition(clusterv1.ScalingDownCondition, reasons, j.setMembers())
}

// aggregateReplicaCondition aggregates one of the conditions RollingOut, ScalingUp and ScalingDown over everything with
// replicas. The conditions are optional for the control plane, and RollingOut is optional for MachinePools.
func (j conditionInput) aggregateReplicaCondition(conditionType string, reasons condition.Reasons, sets []condition.AggregateMember) condition.Result {
	must := condition.Part{Type: conditionType, Polarity: condition.Negative}
	may := condition.Part{Type: conditionType, Polarity: condition.Negative, Optional: true}
	pools := must
	if conditionType == clusterv1.RollingOutCondition {
		pools = may
	}
	return combineVerdicts(reasons, condition.Negative,
		condition.Aggregate(j.controlPlaneMember(conditionType), may, reasons),
		condition.Aggregate(j.deploymentMembers(), must, reasons),
		condition.Aggregate(j.poolMembers(), pools, reasons),
		condition.Aggregate(sets, must, reasons))
}

func (j conditionInput) remediating() condition.Result {
	sick := j.machinesThat(func(m *clusterv1.Machine) bool {
		set := condition.Set(m.Status.Conditions)
		return set.IsFalse(clusterv1.MachineHealthCheckSucceededCondition) && set.IsFalse(clusterv1.MachineOwnerRemediatedCondition)
	})
	if len(sick) == 0 {
		return condition.False(clusterv1.ClusterNotRemediatingReason, "")
	}
	v := condition.Aggregate(members(sick), condition.Part{Type: clusterv1.MachineOwnerRemediatedCondition},
		condition.Reasons{Issue: clusterv1.ClusterRemediatingReason})
	return condition.TrueBecause(clusterv1.ClusterRemediatingReason, v.Message)
}

func (j conditionInput) remoteConnectionProbe() condition.Result {
	h := j.Connection
	if j.controlPlaneLeaves() {
		return condition.False(controlPlaneDeleted, "The control plane is deleted with the Cluster")
	}
	if h.IsHealthy() || j.connectionGraceLeft() > 0 {
		return condition.True(clusterv1.ClusterRemoteConnectionProbeSucceededReason)
	}
	message := "Remote connection probe failed"
	if h.LastProbeSuccess.IsZero() {
		message = "Remote connection not established yet"
	}
	if h.Problem != "" && ptr.Deref(j.reached.ControlPlaneInitialized, false) {
		message += ": " + h.Problem
	}
	return condition.False(clusterv1.ClusterRemoteConnectionProbeFailedReason, message)
}

// controlPlaneLeaves reports whether the control plane is deleted, or being deleted, with the Cluster. A failing
// connection to the workload cluster is then expected.
func (j conditionInput) controlPlaneLeaves() bool {
	if !deleting(j.snapshot) || j.plan.Stage.Order == hookStage {
		return false
	}
	l := j.control()
	if !j.Cluster.Spec.ControlPlaneRef.IsDefined() {
		return len(j.machines(true)) == 0
	}
	return l.IsGone() || l.Presence() == contract.Found && !l.Object().GetDeletionTimestamp().IsZero()
}

// connectionGraceLeft returns how long a failing connection still counts as healthy. Decide rechecks the Cluster when
// this time is over.
func (s snapshot) connectionGraceLeft() time.Duration {
	was := condition.Set(s.Cluster.Status.Conditions).IsTrue(clusterv1.ClusterRemoteConnectionProbeCondition)
	return s.Connection.GraceLeft(s.Now, s.Settings.ConnectionGrace, was)
}

func (j conditionInput) available(set condition.Set) condition.Result {
	parts := []condition.Part{ // conditions that explain the others come first
		{Type: clusterv1.ClusterDeletingCondition, Polarity: condition.Negative},
		{Type: clusterv1.ClusterTopologyReconciledCondition, Optional: !j.Cluster.Spec.Topology.IsDefined(), Only: []string{
			clusterv1.ClusterTopologyReconciledFailedReason, clusterv1.ClusterTopologyReconciledClusterClassNotReconciledReason,
		}},
		{Type: clusterv1.ClusterRemoteConnectionProbeCondition, Ignore: []string{controlPlaneDeleted}},
		{Type: clusterv1.ClusterInfrastructureReadyCondition},
		{Type: clusterv1.ClusterControlPlaneAvailableCondition},
		{Type: clusterv1.ClusterWorkersAvailableCondition},
	}
	for _, g := range j.Gates {
		part := condition.Part{Type: g.ConditionType}
		if g.Polarity == clusterv1.NegativePolarityCondition {
			part.Polarity = condition.Negative
		}
		parts = append(parts, part)
	}
	return condition.Summarize(set, condition.Reasons{
		Info: clusterv1.ClusterAvailableReason, Issue: clusterv1.ClusterNotAvailableReason, Unknown: clusterv1.ClusterAvailableUnknownReason,
	}, parts...)
}

// combineVerdicts combines the conditions of several kinds into one. The worst status decides, and the message includes
// every line of the results that are not good.
func combineVerdicts(reasons condition.Reasons, p condition.Polarity, verdicts ...condition.Result) condition.Result {
	bad, good := metav1.ConditionFalse, metav1.ConditionTrue
	if p == condition.Negative {
		bad, good = good, bad
	}
	lines := map[metav1.ConditionStatus][]string{}
	seen := map[metav1.ConditionStatus]bool{}
	for _, v := range verdicts {
		seen[v.Status] = true
		if v.Message != "" {
			lines[v.Status] = append(lines[v.Status], v.Message)
		}
	}
	out := condition.Result{Status: good, Reason: reasons.Info, Message: strings.Join(lines[good], "\n")}
	switch {
	case seen[bad]:
		out = condition.Result{Status: bad, Reason: reasons.Issue, Message: strings.Join(append(lines[bad], lines[metav1.ConditionUnknown]...), "\n")}
	case seen[metav1.ConditionUnknown]:
		out = condition.Unknown(reasons.Unknown, strings.Join(lines[metav1.ConditionUnknown], "\n"))
	}
	return out
}
