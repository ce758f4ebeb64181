package machinehealthcheck

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

// The predicates for the watches of controller.go select changes that can affect the result of a health check, and
// ignore heartbeats. A field that the checks read must be compared here. Reconciliations of one health check are
// separated by [interval], so that hundreds of Machines that are created together are also checked together.

// clusterMatters selects the Cluster changes that affect every controller, and changes of the infrastructure's
// readiness. [Add] filters its watch of Clusters with it.
func clusterMatters() predicate.Predicate {
	ready := func(o client.Object) bool {
		c, ok := o.(*clusterv1.Cluster)
		return ok && condition.Set(c.Status.Conditions).IsTrue(clusterv1.ClusterInfrastructureReadyCondition)
	}
	return predicate.Or(watches.ClusterChanged(), predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return ready(e.ObjectOld) != ready(e.ObjectNew) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	})
}

// machineMatters selects changes of a Machine that the checks use. [Add] filters its watch of Machines with it.
func machineMatters() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*clusterv1.Machine)
			after, ok2 := e.ObjectNew.(*clusterv1.Machine)
			return ok && ok2 && machineChanged(before, after)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func machineChanged(before, after *clusterv1.Machine) bool {
	return before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		before.Status.NodeRef != after.Status.NodeRef ||
		!maps.Equal(before.Labels, after.Labels) ||
		!maps.Equal(before.Annotations, after.Annotations) ||
		!maps.Equal(relevantConditions(before.Status.Conditions), relevantConditions(after.Status.Conditions))
}

// relevantConditions returns the parts of conditions that the checks use. Reasons are included if they identify the
// writer of a condition.
func relevantConditions(conditions []metav1.Condition) map[string]string {
	out := map[string]string{}
	for _, c := range conditions {
		out[c.Type] = string(c.Status)
		switch c.Type {
		case clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition,
			clusterv1.MachineExternallyRemediatedCondition:
			out[c.Type] += " " + c.Reason
		}
	}
	return out
}

// nodeMatters reports whether a change of a Node affects the checks. It ignores heartbeats. The watch of Nodes in
// workload clusters filters with it.
func nodeMatters(before, after client.Object) bool {
	b, a := before.(*corev1.Node), after.(*corev1.Node)
	states := func(n *corev1.Node) map[corev1.NodeConditionType]corev1.ConditionStatus {
		out := map[corev1.NodeConditionType]corev1.ConditionStatus{}
		for _, c := range n.Status.Conditions {
			out[c.Type] = c.Status
		}
		return out
	}
	return !maps.Equal(states(b), states(a))
}

// debounced returns the setup with the interval of health checks, unless debouncing is disabled. [Add] calls it.
func debounced(s reconciler.Setup) reconciler.Setup {
	if s.ReconcileInterval > 0 {
		s.ReconcileInterval = interval
	}
	return s
}
