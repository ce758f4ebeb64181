package loop

import (
	"context"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kube"
)

// Pausing (PA-01, CL-02): an object is left alone while its Cluster says spec.paused or it carries the
// annotation cluster.x-k8s.io/paused. The Paused condition is then applied under a field manager of its own,
// so that the rest of the status stays what it was. Not being paused is part of the ordinary status.

var pauseTable = condition.Table[pause]{{Type: clusterv1.PausedCondition, Polarity: condition.Negative, Of: pause.verdict}}

// pause is who asked for it.
type pause struct{ byCluster, byAnnotation bool }

func (p pause) verdict() condition.Verdict {
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

// paused reports whether to leave the object alone, after saying so in its condition.
func (r *Reconciler[O, S]) paused(ctx context.Context, o O) (bool, error) {
	p, err := r.pauseOf(ctx, o)
	if err != nil || p == (pause{}) {
		return false, err
	}
	conditions := pauseTable.Evaluate(p, r.moment(o))
	return true, r.Writer.As(r.Name+"-pause").ApplyStatus(ctx, o, map[string]any{"conditions": conditions})
}

func (r *Reconciler[O, S]) pauseOf(ctx context.Context, o O) (pause, error) {
	_, annotated := o.GetAnnotations()[clusterv1.PausedAnnotation]
	p := pause{byAnnotation: annotated}
	if c, ok := any(o).(*clusterv1.Cluster); ok {
		p.byCluster = c.Spec.Paused != nil && *c.Spec.Paused
		return p, nil
	}
	name := clusterOf(o)
	if name == "" {
		return p, nil
	}
	c, err := kube.Cluster(ctx, r.Client, client.ObjectKey{Namespace: o.GetNamespace(), Name: name})
	if err != nil || c == nil {
		return p, err
	}
	p.byCluster = c.Spec.Paused != nil && *c.Spec.Paused
	return p, nil
}

// statusChange is what to write of the status, with the condition that the object is not paused; nil: nothing. What the API
// would refuse is left out, and refused says what that is.
func (r *Reconciler[O, S]) statusChange(o O, status any) (change *kube.StatusChange, refused, err error) {
	change, err = r.Writer.StatusChange(o, status, pauseTable.Evaluate(pause{}, r.moment(o))...)
	if err != nil || change == nil || r.Limits == nil {
		return change, nil, err
	}
	kept, refused := r.accepted(o, change.Want)
	if refused == nil {
		return change, nil, nil
	}
	change, err = r.Writer.StatusChange(o, kept)
	return change, refused, err
}

func (r *Reconciler[O, S]) moment(o O) condition.Moment {
	return condition.Moment{Generation: o.GetGeneration(), Now: r.now(), Old: o.GetConditions()}
}

func (r *Reconciler[O, S]) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// group returns the group of an apiVersion.
func group(apiVersion string) string {
	g, _, _ := strings.Cut(apiVersion, "/")
	return g
}

// MomentOf returns what a controller's own condition table needs to know of the object.
func MomentOf(o Object, now time.Time) condition.Moment {
	return condition.Moment{Generation: o.GetGeneration(), Now: now, Old: o.GetConditions()}
}
