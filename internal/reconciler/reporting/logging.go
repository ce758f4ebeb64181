package reporting

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WithObjectNames adds the object's Cluster and its controller owner to the logger, each under its kind as the key. The
// driver calls it at the start of each reconciliation. A search for one Cluster or one MachineDeployment then finds
// every log line about the objects that belong to it.
func WithObjectNames(ctx context.Context, o client.Object, kind string) context.Context {
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
