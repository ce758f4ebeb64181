package reconciler

import (
	"context"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler/reporting"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

// isPaused returns why the object is paused and must not be reconciled. Each reconciliation begins with it. It applies
// the conditions of a paused object with a separate field manager, so that the rest of the status stays unchanged.
// Objects that are not paused have the Paused condition in their regular status.
func (r *Reconciler[O, S]) isPaused(ctx context.Context, o O) (reporting.Pause, error) {
	var while WhilePaused
	if r.WhilePaused != nil {
		while = r.WhilePaused(o)
	}
	if while.Reconcile {
		return reporting.Pause{}, nil
	}
	p, err := reporting.ReadPause(ctx, r.Client, o)
	if err != nil || p == (reporting.Pause{}) || kube.IsArriving(o) {
		return p, err // the watch reports the arrival of an object as an event
	}
	conditions := p.Conditions(o, r.now(), while.False...)
	return p, r.Writer.WithController(r.Name+"-pause").ApplyStatus(ctx, o, map[string]any{"conditions": conditions})
}

// pausePlan returns the plan of a paused object: it waits for the end of the pause. The driver returns it instead of a
// plan of the controller, and the [PlanStore] stores it.
func pausePlan(p reporting.Pause, kind string, o client.Object) Plan {
	var plan Plan
	if p.ByCluster {
		name := watches.ClusterOf(o)
		if kind == clusterv1.ClusterKind {
			name = o.GetName()
		}
		plan.WaitFor(clusterv1.PausedReason, "Cluster %s is paused: set its spec.paused to false to continue", name).
			For(clusterv1.ClusterKind, name).ToChange("spec.paused")
	}
	if p.ByAnnotation {
		plan.WaitFor(clusterv1.PausedReason, "%s %s is paused: remove its annotation %s to continue", kind, o.GetName(), clusterv1.PausedAnnotation).
			For(kind, o.GetName()).ToChange("metadata.annotations[" + clusterv1.PausedAnnotation + "]")
	}
	return plan
}

func (r *Reconciler[O, S]) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// EvaluateOptionsFor returns the generation, time and previous conditions with which a controller evaluates its
// condition table. Report functions call it, and so do actions that set conditions of other objects, such as Machines.
func EvaluateOptionsFor(o Object, now time.Time) condition.EvaluateOptions {
	return condition.EvaluateOptions{Generation: o.GetGeneration(), Now: now, Old: o.GetConditions()}
}
