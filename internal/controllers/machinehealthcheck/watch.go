package machinehealthcheck

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// What wakes a health check (HC-10): changes that can change what it says, and no heartbeats. Between two passes over
// one health check lies an interval, so that hundreds of Machines that come into being together are looked at
// together.

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

// paced is a Reconciler that makes at most one pass over an object in an interval, and puts off the next until it is
// over.
type paced struct {
	reconcile.Reconciler
	interval time.Duration
	now      func() time.Time

	mu   sync.Mutex
	last map[client.ObjectKey]time.Time
}

func newPaced(r reconcile.Reconciler, interval time.Duration) *paced {
	if interval == 0 {
		interval = DefaultInterval
	}
	return &paced{Reconciler: r, interval: interval, now: time.Now, last: map[client.ObjectKey]time.Time{}}
}

// Reconcile implements reconcile.Reconciler.
func (p *paced) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if left := p.begin(req.NamespacedName); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	return p.Reconciler.Reconcile(ctx, req)
}

// begin notes the beginning of a pass, or returns how long it has to wait.
func (p *paced) begin(key client.ObjectKey) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if left := p.interval - now.Sub(p.last[key]); left > 0 {
		return left
	}
	for old, at := range p.last { // what is past tells nothing any more
		if now.Sub(at) >= p.interval {
			delete(p.last, old)
		}
	}
	p.last[key] = now
	return 0
}
