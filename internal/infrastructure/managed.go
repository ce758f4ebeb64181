package infrastructure

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ManagedReconciler filters the objects of one kind: it passes to Inner only those that this provider manages. Objects
// that are managed externally or lack their owner get no finalizer, condition or event. The controllers of
// LocalClusters, LocalMachinePools and SSHClusters wrap their reconcilers in it, because Cluster API's contract
// requires that a provider does not reconcile an object with the annotation cluster.x-k8s.io/managed-by.
type ManagedReconciler struct {
	Inner  reconcile.Reconciler
	Client client.Reader
	// New returns an empty object of the kind.
	New func() client.Object
	// Finalizer of the kind: an object that has it and is being deleted still needs to be reconciled.
	Finalizer string
	// HasOwner reports whether the object has the owner that it needs to be reconciled.
	HasOwner func(client.Object) bool
	// OnObject is called with each object, including paused ones. It may be nil.
	OnObject func(client.Object)
}

// Reconcile passes the request to Inner if this provider manages the object. controller-runtime calls it.
func (g ManagedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := g.New()
	err := g.Client.Get(ctx, req.NamespacedName, o)
	if apierrors.IsNotFound(err) {
		return g.Inner.Reconcile(ctx, req) // deletes the state that it retains for the object
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if g.OnObject != nil {
		g.OnObject(o)
	}
	if !g.isManaged(o) {
		return ctrl.Result{}, nil
	}
	return g.Inner.Reconcile(ctx, req)
}

func (g ManagedReconciler) isManaged(o client.Object) bool {
	if !o.GetDeletionTimestamp().IsZero() {
		return controllerutil.ContainsFinalizer(o, g.Finalizer)
	}
	_, external := o.GetAnnotations()[clusterv1.ManagedByAnnotation]
	return !external && g.HasOwner(o)
}
