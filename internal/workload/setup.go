package workload

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// SetupWithManager adds c to a manager, as a controller of Clusters and as a Runnable. It watches Clusters and labelled
// kubeconfig Secrets through the manager's cache. The controller is called "remote", as in the flags and the metrics.
// The manager calls it at its start.
func (c *Clusters) SetupWithManager(mgr ctrl.Manager) error {
	c.log = mgr.GetLogger().WithName("remote")
	if err := mgr.Add(c); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("remote").
		For(&clusterv1.Cluster{}, builder.WithPredicates(clusterChanged())).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.secretToCluster)).
		WithOptions(controller.Options{MaxConcurrentReconciles: c.cfg.Concurrency}).
		Complete(c)
}

// secretToCluster maps a kubeconfig Secret to its Cluster, and marks the Secret to be read again.
func (c *Clusters) secretToCluster(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" || obj.GetName() != name+"-kubeconfig" {
		return nil
	}
	key := client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}
	if e := c.lookup(key); e != nil {
		e.markDirty()
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// clusterChanged filters out updates of a Cluster that do not change any input of decide.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(ev event.UpdateEvent) bool {
		before, ok1 := ev.ObjectOld.(*clusterv1.Cluster)
		after, ok2 := ev.ObjectNew.(*clusterv1.Cluster)
		return !ok1 || !ok2 || fingerprintOf(before) != fingerprintOf(after) ||
			!ptr.Equal(before.Status.Initialization.InfrastructureProvisioned, after.Status.Initialization.InfrastructureProvisioned)
	}}
}
