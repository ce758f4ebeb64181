package machineset

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// ofMachine enqueues the MachineSet that controls a Machine. If the Machine has no controller, it enqueues the
// MachineSets that may adopt it. It and the functions below map changes of other objects to MachineSets, for the
// watches that [Add] starts.
func (c *controller) ofMachine(ctx context.Context, o client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(o)
	if owner != nil && owner.Kind == setKind {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: owner.Name}}}
	}
	if owner != nil {
		return nil
	}
	m := o.(*clusterv1.Machine)
	return c.list(ctx, func(set *clusterv1.MachineSet) bool {
		return set.Spec.ClusterName == m.Spec.ClusterName &&
			(selects(set, m) || m.Labels[clusterv1.MachineSetNameLabel] == contract.LabelValue(set.Name))
	}, client.InNamespace(o.GetNamespace()))
}

// ofDeployment enqueues the MachineSets of a MachineDeployment.
func (c *controller) ofDeployment(ctx context.Context, o client.Object) []reconcile.Request {
	cluster := client.ObjectKey{Namespace: o.GetNamespace(), Name: o.(*clusterv1.MachineDeployment).Spec.ClusterName}
	return c.list(ctx, func(set *clusterv1.MachineSet) bool {
		owner := metav1.GetControllerOfNoCopy(set)
		return owner != nil && owner.Kind == deploymentKind && owner.Name == o.GetName()
	}, watches.InCluster(Name, cluster)...)
}

// ofCluster enqueues the MachineSets that wait for the connection to their Cluster, when that connection changes.
func (c *controller) ofCluster(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
	return c.list(ctx, func(set *clusterv1.MachineSet) bool { return set.Status.ObservedGeneration == 0 }, watches.InCluster(Name, cluster)...)
}

// ofControlPlane enqueues the MachineSets of the Cluster of a control plane, which preflight checks read.
func (c *controller) ofControlPlane(ctx context.Context, plane client.Object) []reconcile.Request {
	name := plane.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	return c.list(ctx, func(*clusterv1.MachineSet) bool { return true },
		watches.InCluster(Name, client.ObjectKey{Namespace: plane.GetNamespace(), Name: name})...)
}

func (c *controller) list(ctx context.Context, keep func(*clusterv1.MachineSet) bool, opts ...client.ListOption) []reconcile.Request {
	sets := &clusterv1.MachineSetList{}
	if err := c.client.List(ctx, sets, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range sets.Items {
		if keep(&sets.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
		}
	}
	return out
}

// deploymentMatters selects the changes of a MachineDeployment that its MachineSets read.
func deploymentMatters() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
}
