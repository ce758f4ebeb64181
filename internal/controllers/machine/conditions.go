package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controllers/machine/drain"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// reasonProviderIDDiffers is the reason of the Node conditions if the Node's provider ID differs from the
// Machine's.
const reasonProviderIDDiffers = "ProviderIDDiffers"

// conditions are the conditions that the controller writes, in the order of their evaluation; [report] evaluates them
// after each reconciliation. Types, polarities and reasons are defined by Cluster API, except for the reasons that
// Slipway declares.
var conditions = condition.Table[conditionInput]{
	{Type: clusterv1.MachineDeletingCondition, Polarity: condition.Negative, Compute: conditionInput.deleting},
	{Type: clusterv1.MachineUpdatingCondition, Polarity: condition.Negative, Compute: conditionInput.updating},
	{Type: clusterv1.MachineBootstrapConfigReadyCondition, Compute: conditionInput.bootstrapConfigReady},
	{Type: clusterv1.MachineInfrastructureReadyCondition, Compute: conditionInput.infrastructureReady},
	{Type: clusterv1.MachineNodeReadyCondition, Compute: conditionInput.nodeReady},
	{Type: clusterv1.MachineNodeHealthyCondition, Compute: conditionInput.nodeHealthy},
	{Type: clusterv1.MachineUpToDateCondition, Compute: conditionInput.upToDate},
	{Type: clusterv1.MachineReadyCondition, Summarize: conditionInput.ready},
	{Type: clusterv1.MachineAvailableCondition, Summarize: conditionInput.available},
}

// conditionInput is the input of the conditions: the snapshot, the plan, its outcome and parts of the new status.
// [report] fills it.
type conditionInput struct {
	snapshot
	plan    reconciler.Plan
	out     reconciler.Outcome
	reached clusterv1.MachineInitializationStatus
	// evicted are the results of the evictions in this reconciliation, or nil if there were none.
	evicted *drain.Results
	nodeRef clusterv1.MachineNodeReference
	// deletion is the new deletion status.
	deletion *clusterv1.MachineDeletionStatus
}

func (j conditionInput) deleting() condition.Result {
	if !deleting(j.snapshot) {
		return condition.False(clusterv1.MachineNotDeletingReason, "")
	}
	node := false // set if an action on the Node failed; the message of its wait describes the problem
	switch j.out.Failed.(type) {
	case deleteWorkloadNode, cordon:
		node = true
	}
	switch kind := fault.KindOf(j.out.Err); {
	case node && retryAfterRejection(j.out.Err) > 0: // the reason differs from the reason after an attempted deletion
		return condition.TrueBecause(clusterv1.MachineDeletingReason, fmt.Sprintf("Waiting for a turn to %s", j.out.Failed))
	case j.out.Err != nil && !node && kind != fault.Conflict && kind != fault.Unreachable:
		return condition.TrueBecause(clusterv1.MachineDeletingInternalErrorReason, fmt.Sprintf("Could not %s; retrying", j.out.Failed))
	case j.evicted != nil:
		return condition.TrueBecause(j.plan.Stage.Reason, drainMessage(j.snapshot, j.evicted))
	}
	return condition.TrueBecause(j.plan.Stage.Reason, j.plan.Stage.Message)
}

func (j conditionInput) updating() condition.Result { return j.update().Verdict() }

// upToDate computes the UpToDate condition for the Machines of MachineDeployments. Other owners set the condition
// themselves.
func (j conditionInput) upToDate() condition.Result {
	if j.Deployment == nil {
		return condition.Absent()
	}
	return rollout.UpToDateCondition(j.Machine, j.Set, j.Deployment, j.Now)
}

func (j conditionInput) bootstrapConfigReady() condition.Result {
	bootstrap := j.Machine.Spec.Bootstrap
	if !bootstrap.ConfigRef.IsDefined() {
		return condition.True(clusterv1.MachineBootstrapDataSecretProvidedReason)
	}
	return j.bootstrap().ComputeCondition()
}

func (j conditionInput) infrastructureReady() condition.Result { return j.infra().ComputeCondition() }

// noNode returns the value of a Node condition if the Node is unavailable, or Absent if the Node was read. The argument
// before is the current condition.
func (j conditionInput) noNode(before *metav1.Condition) condition.Result {
	n := j.Node
	switch {
	case n.Waiting != "":
		return condition.Unknown(clusterv1.MachineNodeInspectionFailedReason, n.Waiting)
	case n.Unreachable && before != nil && (j.nodesGraceLeft() > 0 || j.connectionGraceLeft() > 0):
		return condition.Result{Status: before.Status, Reason: before.Reason, Message: before.Message}
	case n.Unreachable && j.Connection.IsHealthy() && n.Problem != "":
		return condition.Unknown(clusterv1.MachineNodeInspectionFailedReason, "The Nodes of the workload cluster cannot be read: "+n.Problem)
	case n.Unreachable:
		return condition.Unknown(clusterv1.MachineNodeConnectionDownReason, "The workload cluster does not answer")
	case len(n.Duplicates) > 0:
		return condition.Unknown(ownership.ReasonNodesAmbiguous, fmt.Sprintf(
			"Nodes %s have the same spec.providerID %s: a provider ID has to be unique", strings.Join(n.Duplicates, ", "), providerID(j.snapshot)))
	case n.Item != nil:
		return condition.Absent()
	case n.OtherProviderID != "":
		return condition.False(reasonProviderIDDiffers, fmt.Sprintf(
			"Node %s has spec.providerID %s, and the Machine has %s: restore the provider ID that is wrong, or delete Machine %s",
			j.nodeRef.Name, n.OtherProviderID, providerID(j.snapshot), j.Machine.Name))
	case j.nodeRef.IsDefined() && deleting(j.snapshot):
		return condition.False(clusterv1.MachineNodeDeletedReason, fmt.Sprintf("Node %s has been deleted", j.nodeRef.Name))
	case j.nodeRef.IsDefined():
		return condition.False(clusterv1.MachineNodeDeletedReason, fmt.Sprintf("Node %s has been deleted while the Machine still exists", j.nodeRef.Name))
	case !initialized(j.snapshot) && !isControlPlane(j.Machine):
		return condition.Unknown(clusterv1.MachineNodeInspectionFailedReason, waitsForInitialization)
	case providerID(j.snapshot) != "":
		return condition.Unknown(clusterv1.MachineNodeDoesNotExistReason, "Waiting for a Node with spec.providerID "+providerID(j.snapshot)+" to exist")
	}
	return condition.Unknown(clusterv1.MachineNodeDoesNotExistReason, "Waiting for "+j.Machine.Spec.InfrastructureRef.Kind+" to report spec.providerID")
}

// nodesGraceLeft returns how much longer the Nodes of a reachable workload cluster may be unreadable before their
// conditions become Unknown. Decide rechecks the Machine when this time is over.
func (s snapshot) nodesGraceLeft() time.Duration {
	if !s.Connection.IsHealthy() {
		return 0
	}
	return s.Connection.NodesGraceLeft(s.Now, s.Settings.ConditionsGrace)
}

// connectionGraceLeft returns how much longer a failing connection counts as healthy. Decide rechecks the Machine when
// this time is over.
func (s snapshot) connectionGraceLeft() time.Duration {
	before := condition.Set(s.Machine.Status.Conditions).Get(clusterv1.MachineNodeReadyCondition)
	was := before != nil && before.Reason != clusterv1.MachineNodeConnectionDownReason
	return s.Connection.GraceLeft(s.Now, s.Settings.ConditionsGrace, was)
}

func (j conditionInput) nodeReady() condition.Result {
	if v := j.noNode(j.before(clusterv1.MachineNodeReadyCondition)); v.Status != "" {
		return v
	}
	return nodeReady(j.Node.Item)
}

func (j conditionInput) nodeHealthy() condition.Result {
	if v := j.noNode(j.before(clusterv1.MachineNodeHealthyCondition)); v.Status != "" {
		return v
	}
	return nodeHealthy(j.Node.Item)
}

func (j conditionInput) before(conditionType string) *metav1.Condition {
	return condition.Set(j.Machine.Status.Conditions).Get(conditionType)
}

func (j conditionInput) ready(set condition.Set) condition.Result {
	parts := []condition.Part{
		{Type: clusterv1.MachineBootstrapConfigReadyCondition},
		{Type: clusterv1.MachineInfrastructureReadyCondition},
		{Type: clusterv1.MachineNodeHealthyCondition},
		{Type: clusterv1.MachineHealthCheckSucceededCondition, Optional: true},
		{Type: clusterv1.MachineDeletingCondition, Polarity: condition.Negative},
		{Type: clusterv1.MachineUpdatingCondition, Polarity: condition.Negative},
	}
	for _, g := range j.Machine.Spec.ReadinessGates {
		part := condition.Part{Type: g.ConditionType}
		if g.Polarity == clusterv1.NegativePolarityCondition {
			part.Polarity = condition.Negative
		}
		parts = append(parts, part)
	}
	quiet, parts := j.omitRedundant(set, parts)
	return condition.Summarize(quiet, condition.Reasons{
		Info: clusterv1.MachineReadyReason, Issue: clusterv1.MachineNotReadyReason, Unknown: clusterv1.MachineReadyUnknownReason,
	}, parts...)
}

// omitRedundant shortens the message of the Ready condition: it omits the details of a deletion, and merges equal
// messages of control plane components.
func (j conditionInput) omitRedundant(set condition.Set, parts []condition.Part) (condition.Set, []condition.Part) {
	quiet := slices.Clone(set)
	if c := quiet.Get(clusterv1.MachineDeletingCondition); c != nil && c.Status == metav1.ConditionTrue {
		c.Message = "Machine deletion in progress, stage: " + c.Reason
		if j.Now.Sub(j.Machine.DeletionTimestamp.Time) >= condition.LingerAfter {
			c.Message = "Machine deletion in progress for more than 15m, stage: " + c.Reason
		}
		c.Message += j.delayedBy(c.Reason)
	}
	return mergeComponentMessages(quiet, parts)
}

// delayedBy summarizes the causes of a drain that takes long.
func (j conditionInput) delayedBy(reason string) string {
	if reason != clusterv1.MachineDeletingDrainingNodeReason || j.Drain == nil || j.Now.Sub(drainStart(j.snapshot).Time) < staleDrain {
		return ""
	}
	delays := drain.Delays(*j.Drain, ptr.Deref(j.evicted, drain.Results{}))
	if len(delays) == 0 {
		return ""
	}
	return ", delayed by " + strings.Join(delays, ", ")
}

// severalComponents is the pseudo condition for several control plane components with the same message.
const severalComponents = "Control plane components"

func mergeComponentMessages(set condition.Set, parts []condition.Part) (condition.Set, []condition.Part) {
	var first *metav1.Condition
	n := 0
	for _, p := range parts {
		c := set.Get(p.Type)
		if !isComponent(p) || c == nil || c.Status == metav1.ConditionTrue || c.Message == "" {
			continue
		}
		if first != nil && (c.Message != first.Message || c.Status != first.Status) {
			return set, parts
		}
		first, n = c, n+1
	}
	if n < 2 {
		return set, parts
	}
	one := *first
	one.Type = severalComponents
	rest := slices.DeleteFunc(slices.Clone(parts), func(p condition.Part) bool {
		c := set.Get(p.Type)
		return isComponent(p) && c != nil && c.Status == one.Status && c.Message == one.Message
	})
	return append(set, one), append(rest, condition.Part{Type: severalComponents})
}

// isComponent reports whether the part is a readiness gate for a component of the control plane, such as
// APIServerPodHealthy. The KubeadmControlPlane controller sets these gates, so the prefixes must match its conditions.
func isComponent(p condition.Part) bool {
	return p.Polarity == condition.Positive && (strings.HasPrefix(p.Type, "APIServer") ||
		strings.HasPrefix(p.Type, "ControllerManager") || strings.HasPrefix(p.Type, "Scheduler"))
}

func (j conditionInput) available(set condition.Set) condition.Result {
	ready := set.Get(clusterv1.MachineReadyCondition)
	switch {
	case ready == nil || ready.Status != metav1.ConditionTrue:
		return condition.False(clusterv1.MachineNotReadyReason, "")
	case availableIn(j.snapshot, *ready) > 0:
		return condition.False(clusterv1.MachineWaitingForMinReadySecondsReason, "")
	}
	return condition.True(clusterv1.MachineAvailableReason)
}
