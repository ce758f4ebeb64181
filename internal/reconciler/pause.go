package reconciler

import (
	"context"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kube"
)

// An object is not reconciled while its Cluster sets spec.paused or the object has the annotation
// cluster.x-k8s.io/paused. The Paused condition is then applied with a separate field manager, so that the rest of
// the status stays unchanged. Objects that are not paused have the condition in their regular status.

var pauseTable = condition.Table[pause]{{Type: clusterv1.PausedCondition, Polarity: condition.Negative, Compute: pause.verdict}}

// pause holds the reasons why an object is paused.
type pause struct{ byCluster, byAnnotation bool }

func (p pause) verdict() condition.Result {
	var by []string
	if p.byCluster {
		by = append(by, "Cluster spec.paused is set to true")
	}
	if p.byAnnotation {
		by = append(by, "the object has the "+clusterv1.PausedAnnotation+" annotation")
	}
	if len(by) == 0 {
		return condition.False(clusterv1.NotPausedReason, "")
	}
	return condition.TrueBecause(clusterv1.PausedReason, strings.Join(by, ", "))
}

// plan returns the plan of a paused object: it waits for the end of the pause.
func (p pause) plan(kind string, o client.Object) Plan {
	var plan Plan
	if p.byCluster {
		name := ClusterOf(o)
		if kind == clusterv1.ClusterKind {
			name = o.GetName()
		}
		plan.WaitFor(clusterv1.PausedReason, "Cluster %s is paused: set its spec.paused to false to go on", name).
			For(clusterv1.ClusterKind, name).ToChange("spec.paused")
	}
	if p.byAnnotation {
		plan.WaitFor(clusterv1.PausedReason, "%s %s is paused: remove its annotation %s to go on", kind, o.GetName(), clusterv1.PausedAnnotation).
			For(kind, o.GetName()).ToChange("metadata.annotations[" + clusterv1.PausedAnnotation + "]")
	}
	return plan
}

// isPaused returns why the object is paused, after it has written the Paused condition. The zero value means that
// the object is not paused.
func (r *Reconciler[O, S]) isPaused(ctx context.Context, o O) (p pause, err error) {
	if p.byCluster, err = isPausedByCluster(ctx, r.Client, o); err != nil {
		return pause{}, err
	}
	if _, p.byAnnotation = o.GetAnnotations()[clusterv1.PausedAnnotation]; p == (pause{}) || kube.IsArriving(o) {
		return p, nil // the watch reports the arrival of an object as an event
	}
	conditions := r.tableWhilePaused(o).Evaluate(p, r.moment(o))
	return p, r.Writer.WithController(r.Name+"-pause").ApplyStatus(ctx, o, map[string]any{"conditions": conditions})
}

// tableWhilePaused is pauseTable plus the conditions of the controller that depend on the pause: those that are
// False while the object is paused, and Deleting, whose last value may predate the deletion.
func (r *Reconciler[O, S]) tableWhilePaused(o O) condition.Table[pause] {
	table := slices.Clone(pauseTable)
	if r.FalseWhilePaused != nil {
		for _, t := range r.FalseWhilePaused(o) {
			table = append(table, condition.Row[pause]{Type: t, Compute: func(p pause) condition.Result {
				return condition.False(clusterv1.PausedReason, p.verdict().Message)
			}})
		}
	}
	if r.Finalizer != "" && !o.GetDeletionTimestamp().IsZero() && condition.Set(o.GetConditions()).Get(clusterv1.DeletingCondition) != nil {
		table = append(table, condition.Row[pause]{Type: clusterv1.DeletingCondition, Polarity: condition.Negative, Compute: pause.deleting})
	}
	return table
}

// deleting returns the Deleting condition of an object whose deletion cannot continue because it is paused.
func (p pause) deleting() condition.Result {
	return condition.TrueBecause(clusterv1.PausedReason, "The deletion continues when the object is no longer paused: "+p.verdict().Message)
}

func (r *Reconciler[O, S]) moment(o O) condition.EvaluateOptions {
	return EvaluateOptionsFor(o, r.now())
}

func (r *Reconciler[O, S]) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// EvaluateOptionsFor returns the generation, time and previous conditions with which a controller evaluates its condition
// table.
func EvaluateOptionsFor(o Object, now time.Time) condition.EvaluateOptions {
	return condition.EvaluateOptions{Generation: o.GetGeneration(), Now: now, Old: o.GetConditions()}
}

// isPausedByCluster reports whether spec.paused is set in the object's Cluster, or in the object itself if it is a
// Cluster.
func isPausedByCluster(ctx context.Context, c client.Reader, o client.Object) (bool, error) {
	cluster, ok := o.(*clusterv1.Cluster)
	if !ok {
		name := ClusterOf(o)
		if name == "" {
			return false, nil
		}
		var err error
		if cluster, err = kube.GetCluster(ctx, c, client.ObjectKey{Namespace: o.GetNamespace(), Name: name}); err != nil || cluster == nil {
			return false, err
		}
	}
	return ptr.Deref(cluster.Spec.Paused, false), nil
}
