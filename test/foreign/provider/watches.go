package provider

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The provider has no timer: each of its objects is reconciled because one of these says that what it waits for is there.

// clusterMatters lets through what most providers let through of a Cluster: that its infrastructure is provisioned, and that it
// is paused, or not any more.
func clusterMatters() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			c := e.Object.(*clusterv1.Cluster)
			return isTrue(c.Status.Initialization.InfrastructureProvisioned) && !isTrue(c.Spec.Paused)
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*clusterv1.Cluster), e.ObjectNew.(*clusterv1.Cluster)
			return isTrue(before.Spec.Paused) != isTrue(after.Spec.Paused) ||
				!isTrue(before.Status.Initialization.InfrastructureProvisioned) && isTrue(after.Status.Initialization.InfrastructureProvisioned)
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// ofCluster enqueues the objects of a kind with the label of the Cluster, and those that it refers to.
func (p *Provider) ofCluster(k Kind) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		spec := o.(*clusterv1.Cluster).Spec
		return append(p.labelled(ctx, k, o.GetNamespace(), o.GetName()),
			referred(k, o.GetNamespace(), spec.InfrastructureRef, spec.ControlPlaneRef)...)
	}
}

// ofMachine enqueues the objects of a kind that the Machine refers to; a control plane, where the Machine is of its Cluster.
func (p *Provider) ofMachine(k Kind) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		m := o.(*clusterv1.Machine)
		if k.Role == ControlPlane {
			return p.labelled(ctx, k, m.Namespace, m.Spec.ClusterName)
		}
		return referred(k, m.Namespace, m.Spec.InfrastructureRef, m.Spec.Bootstrap.ConfigRef)
	}
}

// ofMachinePool enqueues the objects of a kind that the MachinePool refers to.
func ofMachinePool(k Kind) handler.MapFunc {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		template := o.(*clusterv1.MachinePool).Spec.Template.Spec
		return referred(k, o.GetNamespace(), template.InfrastructureRef, template.Bootstrap.ConfigRef)
	}
}

func referred(k Kind, namespace string, refs ...clusterv1.ContractVersionedObjectReference) []reconcile.Request {
	var out []reconcile.Request
	for _, ref := range refs {
		if ref.APIGroup == k.Group && ref.Kind == k.Kind {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: ref.Name}})
		}
	}
	return out
}

func (p *Provider) labelled(ctx context.Context, k Kind, namespace, cluster string) []reconcile.Request {
	list := k.list()
	if err := p.client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster}); err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}
