package reporting

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

// Pause holds the reasons why an object is paused: its Cluster sets spec.paused, or the object has the annotation
// cluster.x-k8s.io/paused. The driver reads it at the start of each reconciliation. The zero value means that the
// object is not paused. The condition and its messages are defined by Cluster API's contract.
type Pause struct{ ByCluster, ByAnnotation bool }

// ReadPause returns why an object is paused. The driver calls it.
func ReadPause(ctx context.Context, c client.Reader, o client.Object) (p Pause, err error) {
	_, p.ByAnnotation = o.GetAnnotations()[clusterv1.PausedAnnotation]
	cluster, ok := o.(*clusterv1.Cluster)
	if name := watches.ClusterOf(o); !ok && name != "" {
		if cluster, err = kube.GetCluster(ctx, c, client.ObjectKey{Namespace: o.GetNamespace(), Name: name}); err != nil {
			return Pause{}, err
		}
	}
	p.ByCluster = cluster != nil && ptr.Deref(cluster.Spec.Paused, false)
	return p, nil
}

var pauseTable = condition.Table[Pause]{{Type: clusterv1.PausedCondition, Polarity: condition.Negative, Compute: Pause.result}}

func (p Pause) result() condition.Result {
	if p == (Pause{}) {
		return condition.False(clusterv1.NotPausedReason, "")
	}
	return condition.TrueBecause(clusterv1.PausedReason, p.message())
}

func (p Pause) message() string {
	var by []string
	if p.ByCluster {
		by = append(by, "Cluster spec.paused is set to true")
	}
	if p.ByAnnotation {
		by = append(by, "the object has the "+clusterv1.PausedAnnotation+" annotation")
	}
	return strings.Join(by, ", ")
}

// deleting returns the Deleting condition of an object whose deletion cannot continue because it is paused.
func (p Pause) deleting() condition.Result {
	return condition.TrueBecause(clusterv1.PausedReason, "The deletion continues when the object is no longer paused: "+p.message())
}

// Conditions returns the Paused condition of an object and, while it is paused, the conditions of its controller that
// depend on the pause: positive conditions that are False meanwhile, and Deleting, whose last value may predate the
// deletion. The driver adds them to each status.
func (p Pause) Conditions(o object, now time.Time, falseWhilePaused ...string) []metav1.Condition {
	table := slices.Clone(pauseTable)
	for _, t := range falseWhilePaused {
		table = append(table, condition.Row[Pause]{Type: t, Compute: func(p Pause) condition.Result {
			return condition.False(clusterv1.PausedReason, p.message())
		}})
	}
	if p != (Pause{}) && !o.GetDeletionTimestamp().IsZero() && condition.Set(o.GetConditions()).Get(clusterv1.DeletingCondition) != nil {
		table = append(table, condition.Row[Pause]{Type: clusterv1.DeletingCondition, Polarity: condition.Negative, Compute: Pause.deleting})
	}
	return table.Evaluate(p, evaluateOptions(o, now))
}

func evaluateOptions(o object, now time.Time) condition.EvaluateOptions {
	return condition.EvaluateOptions{Generation: o.GetGeneration(), Now: now, Old: o.GetConditions()}
}
