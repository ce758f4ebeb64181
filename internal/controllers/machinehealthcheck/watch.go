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
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/membership"
)

// What enqueues a health check: changes that can change what it says, and no heartbeats. Between two reconciles of
// one health check lies an interval, so that hundreds of Machines that come into being together are checked
// together.

// clusterMatters lets through what of a Cluster every controller looks at, and whether its infrastructure is ready.
func clusterMatters() predicate.Predicate {
	ready := func(o client.Object) bool {
		c, ok := o.(*clusterv1.Cluster)
		return ok && condition.Set(c.Status.Conditions).IsTrue(clusterv1.ClusterInfrastructureReadyCondition)
	}
	return predicate.Or(membership.ClusterChanged(), predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return ready(e.ObjectOld) != ready(e.ObjectNew) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	})
}

// machineMatters lets through what of a Machine the checks look at.
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
		!maps.Equal(gist(before.Status.Conditions), gist(after.Status.Conditions))
}

// gist is what the checks look at of conditions. Reasons matter where they tell whose a condition is.
func gist(conditions []metav1.Condition) map[string]string {
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

// nodeMatters drops heartbeats: what of a Node the checks look at.
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

// debounced is the setup with the interval of health checks, where reconciliations are debounced at all.
func debounced(s loop.Setup) loop.Setup {
	if s.ReconcileInterval > 0 {
		s.ReconcileInterval = Interval
	}
	return s
}
