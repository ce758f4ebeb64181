package loop

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// named adds to the log which Cluster the object belongs to and what controls it, each under its kind: a search for one Cluster, or
// for one MachineDeployment, finds every line about what it has.
func named(ctx context.Context, o client.Object, kind string) context.Context {
	var values []any
	if cluster := o.GetLabels()[clusterv1.ClusterNameLabel]; cluster != "" && kind != clusterv1.ClusterKind {
		values = append(values, clusterv1.ClusterKind, klog.KRef(o.GetNamespace(), cluster))
	}
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind != kind && owner.Kind != clusterv1.ClusterKind {
		values = append(values, owner.Kind, klog.KRef(o.GetNamespace(), owner.Name))
	}
	if len(values) == 0 {
		return ctx
	}
	return ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithValues(values...))
}
