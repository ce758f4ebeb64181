package cluster

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// conditions are the conditions of a LocalCluster that the controller writes, in the order of their evaluation.
// Deleting and Ready are Cluster API's; the others are Slipway's.
var conditions = condition.Table[conditionInput]{
	{Type: infrav1.NetworkReadyCondition, Compute: conditionInput.networkReady},
	{Type: infrav1.LoadBalancerReadyCondition, Compute: conditionInput.balancerReady},
	{Type: clusterv1.DeletingCondition, Polarity: condition.Negative, Compute: conditionInput.deleting},
	condition.Ready[conditionInput](infrav1.NetworkReadyCondition),
}

func (j conditionInput) networkReady() condition.Result {
	why, stage := fault.As(j.outcome.Err), j.plan.Stage
	waiting := stage.Message != ""
	switch {
	case j.Capabilities.NoNetwork && !waiting:
		return condition.True("NotNeeded")
	case why != nil:
		return condition.False(why.Reason, why.Message)
	case j.Fault != nil && j.Object.Status.Network.Name != "":
		return condition.Unknown(j.Fault.Reason, j.Fault.Message)
	case waiting && stage.Order != stageDeletion && (stage.Order != stageEndpoint || j.Network == nil):
		return condition.False(stage.Reason, stage.Message)
	case j.Network == nil && j.Object.Status.Network.Name == "":
		return condition.False("NetworkAbsent", "There is no network")
	case j.Network == nil:
		return condition.False("NetworkAbsent", "The network was removed")
	}
	if message := j.outsideRangesMessage(); message != "" {
		return condition.TrueBecause(reasonOutside, message)
	}
	return condition.True(clusterv1.ReadyReason)
}

func (j conditionInput) deleting() condition.Result {
	if j.Object.DeletionTimestamp.IsZero() {
		return condition.False(clusterv1.NotDeletingReason, "")
	}
	text := infrastructure.WaitMessages(j.plan)
	if c := j.Cluster; c != nil && c.DeletionTimestamp.IsZero() {
		text = strings.TrimPrefix(text+"\nCluster "+c.Name+" still exists: delete it as well; its Machines are deleted first", "\n")
	}
	return condition.TrueBecause(clusterv1.DeletingReason, text)
}

// report computes the status and the events. Package reconciler calls it after the actions. It is pure.
func report(s snapshot, p reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	at := reconciler.EvaluateOptionsFor(s.Object, s.Now)
	status := infrav1.LocalClusterStatus{
		ObservedGeneration: s.Object.Generation,
		Conditions:         conditions.Evaluate(conditionInput{s, p, out}, at),
		FailureDomains:     s.Object.Spec.FailureDomains,
		Initialization:     s.Object.Status.Initialization,
		Network:            s.Object.Status.Network,
	}
	if s.Network != nil {
		status.Network = infrav1.LocalClusterNetworkStatus{
			Name: s.Network.Name, Subnet: s.Network.Subnet.String(), Gateway: s.Network.Gateway.String(),
		}
	}
	idle := len(p.Waits) == 0 && !changesInfrastructure(p) && s.Object.DeletionTimestamp.IsZero()
	if idle && (s.Network != nil || s.Capabilities.NoNetwork) {
		status.Initialization.Provisioned = ptr.To(true)
	}
	return reconciler.Report{Status: status, Events: events(s, status, out)}
}

// changesInfrastructure reports whether the plan changes the infrastructure of the cluster. The load balancer does not
// count: it follows the machines, which are created only after the infrastructure is provisioned.
func changesInfrastructure(p reconciler.Plan) bool {
	return slices.ContainsFunc(p.Actions, func(a reconciler.Action) bool {
		switch a.(type) {
		case ensureBalancer, deleteBalancer:
			return false
		}
		return true
	})
}

// events returns an event for a created or deleted network and a started load balancer, and for a problem or a wait
// when it begins.
func events(s snapshot, status infrav1.LocalClusterStatus, out reconciler.Outcome) []reconciler.Event {
	var list []reconciler.Event
	for _, a := range out.Done {
		switch a := a.(type) {
		case ensureNetwork:
			list = append(list, reconciler.Normal("NetworkCreated", "Created network %s", a.Name))
		case ensureBalancer:
			if s.Balancer == nil || !s.Balancer.Running {
				list = append(list, reconciler.Normal("LoadBalancerStarted", "Started the load balancer at %s", a.Listen))
			}
		case deleteNetwork:
			list = append(list, reconciler.Normal("NetworkDeleted", "Deleted network %s", a.Name))
		}
	}
	now := condition.Set(status.Conditions).Get(infrav1.NetworkReadyCondition)
	before := condition.Set(s.Object.Status.Conditions).Get(infrav1.NetworkReadyCondition)
	trouble := fault.As(out.Err) != nil || s.Fault != nil || slices.Contains([]string{reasonOverlap, reasonDenied, reasonTaken, reasonOutside}, now.Reason)
	if trouble && (before == nil || before.Reason != now.Reason) {
		list = append(list, reconciler.Warning(now.Reason, "%s", now.Message))
	}
	if waitsForMachines(s) && !isDeleting(s.Object.Status.Conditions) {
		list = append(list, reconciler.Normal(reasonMachines, "%s", condition.Set(status.Conditions).Get(clusterv1.DeletingCondition).Message))
	}
	return list
}

// waitsForMachines reports whether the deletion of the object waits for machines.
func waitsForMachines(s snapshot) bool {
	return !s.Object.DeletionTimestamp.IsZero() && len(s.Machines) > 0
}

func isDeleting(conditions []metav1.Condition) bool {
	c := condition.Set(conditions).Get(clusterv1.DeletingCondition)
	return c != nil && c.Status == metav1.ConditionTrue
}
