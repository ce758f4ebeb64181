package machine

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/controllers/machine/drain"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reference"
)

// events returns the events of a reconciliation, which [report] adds to the status. Each is recorded once.
func events(j conditionInput, status clusterv1.MachineStatus) []reconciler.Event {
	var list []reconciler.Event
	if status.NodeRef.IsDefined() && !j.Machine.Status.NodeRef.IsDefined() {
		list = append(list, reconciler.Normal("SuccessfulSetNodeRef", "%s", status.NodeRef.Name))
	}
	list = append(list, reference.Events(j.Machine.Status.Conditions, j.infra(), j.bootstrap())...)
	switch failed := j.out.Failed.(type) {
	case cordon:
		list = append(list, reconciler.Warning("FailedDrainNode", "Node %s could not be cordoned; retrying", failed.Node))
	case deleteWorkloadNode:
		list = append(list, reconciler.Warning("FailedDeleteNode", "Node %s could not be deleted; retrying", failed.Node))
	}
	return append(append(list, drainEvents(j)...), budgetEvents(j)...)
}

// budgetEvents returns a warning if PodDisruptionBudgets block a drain. It is recorded once for each drain, when
// the condition first reports it.
func budgetEvents(j conditionInput) []reconciler.Event {
	if j.evicted == nil {
		return nil
	}
	held := j.evicted.Budgets()
	said := apimeta.FindStatusCondition(j.Machine.Status.Conditions, clusterv1.MachineDeletingCondition)
	if len(held) == 0 || said != nil && strings.Contains(said.Message, drain.HeldByBudget) {
		return nil
	}
	return []reconciler.Event{reconciler.Warning("DrainHeld", "The drain of Node %s waits: %s", j.nodeRef.Name, strings.TrimPrefix(strings.Join(held, "; "), "* "))}
}

// drainEvents returns an event when DrainingSucceeded changes.
func drainEvents(j conditionInput) []reconciler.Event {
	now, is := j.drainingSucceeded()
	if !is {
		return nil
	}
	var before clusterv1.Condition
	for _, c := range j.Machine.GetV1Beta1Conditions() {
		if c.Type == clusterv1.DrainingSucceededV1Beta1Condition {
			before = c
		}
	}
	switch {
	case now.Status == "True" && before.Status != corev1.ConditionTrue:
		return []reconciler.Event{reconciler.Normal("SuccessfulDrainNode", "Node %s is drained", j.nodeRef.Name)}
	case now.Reason == clusterv1.DrainingFailedV1Beta1Reason &&
		(before.Reason != now.Reason || before.Message != now.Message):
		return []reconciler.Event{reconciler.Warning("FailedDrainNode", "%s", now.Message)}
	}
	return nil
}
