package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

// Name is the name of the controller. Its field manager is "slipway-local-cluster", which owns fields of existing
// objects, so it must not change.
const Name = "local-cluster"

// Config contains the dependencies and options of the controller. Package local fills it in.
type Config struct {
	// Instance names the management cluster on the host.
	Instance string
	// Backends are the available backends.
	Backends backend.Set
	// Hub reports changes on the host.
	Hub *backend.Broadcaster
	// Policy is the operator's configuration.
	Policy policy.Configuration
	// ReservedPorts are the ports of the management cluster itself.
	ReservedPorts []uint16
}

// controller reconciles LocalClusters.
type controller struct {
	Config
	client client.Client
	writer *kube.Writer
	// noHosted is set if the management cluster had no kind HostedControlPlane when the manager started.
	noHosted bool
	now      func() time.Time
}

// Add adds the LocalCluster controller with its watches to the manager. Package local calls it.
func Add(s reconciler.Setup, cfg Config) error {
	c := &controller{Config: cfg, client: s.Manager.GetClient(), now: s.Clock()}
	if err := watches.IndexByCluster(s.Manager.GetFieldIndexer(), Name, &infrav1.LocalMachine{}); err != nil {
		return err
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer = r.Writer
	b := s.Builder(Name, &infrav1.LocalCluster{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster), builder.WithPredicates(watches.ClusterChanged())).
		Watches(&infrav1.LocalMachine{}, handler.EnqueueRequestsFromMapFunc(c.ofMember), builder.WithPredicates(predicate.Or(onlyDeletions(), controlPlaneChanged()))).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.ofMember), builder.WithPredicates(controlPlaneChanged())).
		WatchesRawSource(cfg.Hub.Source(c.ofEvent))
	hosted, err := infrastructure.HasHostedControlPlanes(s.Manager.GetRESTMapper())
	if err != nil {
		return err
	}
	if c.noHosted = !hosted; hosted {
		b = b.Watches(&controlplanev1.HostedControlPlane{}, handler.EnqueueRequestsFromMapFunc(c.ofMember), builder.WithPredicates(ownedOrChanged()))
	}
	return b.Complete(c.gated(r))
}

func (c *controller) definition() reconciler.Controller[*infrav1.LocalCluster, snapshot] {
	return reconciler.Controller[*infrav1.LocalCluster, snapshot]{
		Name: Name, Finalizer: infrav1.LocalClusterFinalizer,
		New:            func() *infrav1.LocalCluster { return &infrav1.LocalCluster{} },
		DeferFinalizer: isUntouched,
		Observe:        c.observe, Decide: decide, Act: c.act, Report: report, Read: c.readRequested, OnDeleted: c.gone,
	}
}

// isUntouched reports whether nothing has been created yet for a simulated cluster, whose state besides the endpoint is
// only in memory.
func isUntouched(o *infrav1.LocalCluster) bool {
	return o.Spec.Backend.Simulated != nil && !o.Spec.ControlPlaneEndpoint.IsValid() && !ptr.Deref(o.Status.Initialization.Provisioned, false)
}

// gone deletes the state of a LocalCluster whose object no longer exists. Package reconciler calls it when the object
// is not found.
func (c *controller) gone(_ context.Context, key client.ObjectKey) error {
	return c.Backends.DeleteState(key)
}

// ownedOrChanged selects updates that can change the address of a control plane, or its owner.
func ownedOrChanged() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
}

// onlyDeletions selects deletions: the deletion of the network waits for the last machine.
func onlyDeletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// controlPlaneChanged selects events that can change the members of the load balancer: a control plane machine appears,
// gets its address or is deleted. The control plane provider sets the label on the Machine and the LocalMachine.
func controlPlaneChanged() predicate.Predicate {
	has := func(o client.Object) bool {
		_, ok := o.GetLabels()[clusterv1.MachineControlPlaneLabel]
		return ok
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return has(e.Object) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return has(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return has(e.ObjectNew) && memberFields(e.ObjectOld) != memberFields(e.ObjectNew)
		},
	}
}

// memberFields summarizes the fields of a Machine or LocalMachine on which its load balancer member depends.
func memberFields(o client.Object) string {
	var addresses clusterv1.MachineAddresses
	instance := ""
	switch o := o.(type) {
	case *clusterv1.Machine:
		addresses = o.Status.Addresses
	case *infrav1.LocalMachine:
		addresses, instance = o.Status.Addresses, o.Status.InstanceID
	}
	return fmt.Sprint(addresses, instance, o.GetDeletionTimestamp().IsZero(), owners(o))
}

// owners returns the kinds and names of an object's owners.
func owners(o client.Object) (names []string) {
	for _, ref := range o.GetOwnerReferences() {
		names = append(names, ref.Kind+"/"+ref.Name)
	}
	return names
}

func newList() client.ObjectList { return &infrav1.LocalClusterList{} }

// ofCluster enqueues the LocalCluster that a Cluster refers to.
func ofCluster(_ context.Context, o client.Object) []reconcile.Request {
	ref := o.(*clusterv1.Cluster).Spec.InfrastructureRef
	if ref.Kind != kind || ref.APIGroup != infrav1.GroupVersion.Group {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name}}}
}

// ofMember enqueues the LocalCluster of the Cluster that an object belongs to. The Cluster may be deleted before its
// last machine, as at the end of a move with data. In that case only the LocalCluster's owner reference has its name.
func (c *controller) ofMember(ctx context.Context, o client.Object) []reconcile.Request {
	name := watches.ClusterOf(o)
	cluster := &clusterv1.Cluster{}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: name}, cluster)
	if err == nil {
		return ofCluster(ctx, cluster)
	}
	var list infrav1.LocalClusterList
	if !apierrors.IsNotFound(err) || name == "" || c.client.List(ctx, &list, client.InNamespace(o.GetNamespace())) != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if ownerName(&list.Items[i]) == name {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// ofEvent enqueues the LocalClusters that are affected by an event on the host.
func (c *controller) ofEvent(ctx context.Context, e backend.Event) []reconcile.Request {
	switch {
	case e.Balancer.Name != "":
		return []reconcile.Request{{NamespacedName: e.Balancer}}
	case e.Machine.Name != "", e.Cluster.Name != "":
		return nil
	case e.Network == "":
		return backend.AllObjects(ctx, c.client, newList())
	}
	var list infrav1.LocalClusterList
	if err := c.client.List(ctx, &list); err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		key := client.ObjectKeyFromObject(&list.Items[i])
		if e.Network == backend.NetworkName(c.Instance, key) || e.Network == list.Items[i].Status.Network.Name {
			out = append(out, reconcile.Request{NamespacedName: key})
		}
	}
	return out
}

// gated skips objects that are managed externally or have no owner.
func (c *controller) gated(inner reconcile.Reconciler) infrastructure.ManagedReconciler {
	return infrastructure.ManagedReconciler{
		Inner: inner, Client: c.client, Finalizer: infrav1.LocalClusterFinalizer,
		New:      func() client.Object { return &infrav1.LocalCluster{} },
		HasOwner: func(o client.Object) bool { return ownerName(o) != "" },
		OnObject: c.recordCluster,
	}
}

// recordCluster records the Cluster of a simulated LocalCluster. A manager that starts during a move of the Cluster
// sees the LocalCluster only while it is paused, and has to delete the control plane's state when the object is gone.
func (c *controller) recordCluster(o client.Object) {
	local, ok := o.(*infrav1.LocalCluster)
	if ok && local.Spec.Backend.Simulated != nil {
		c.Backends.RecordCluster(backend.Ref{Object: client.ObjectKeyFromObject(o), Cluster: ownerName(o)})
	}
}
