package clusters

import (
	"context"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// Name of the controller of SSHClusters. Its field manager is "slipway-ssh-cluster", which owns fields of existing
// objects, so it must not change.
const Name = "ssh-cluster"

// kind of the objects that the controller reconciles.
const kind = "SSHCluster"

// Host is a connected host, as far as this controller uses it.
type Host interface {
	ConfigureVirtualIP(ctx context.Context, v remote.VirtualIP, only remote.VirtualIPConditions) error
	VirtualIPState(ctx context.Context, claimID string, address netip.Addr) (remote.VirtualIPState, error)
}

// Connector connects to hosts. Package ssh implements it with the pool of package remote.
type Connector interface {
	Connect(ctx context.Context, t remote.Target) (Host, error)
}

// Config contains the options and dependencies of the controller. Package ssh fills it in.
type Config struct {
	// Connector connects to hosts.
	Connector Connector
	// Policy is the operator's configuration.
	Policy policy.Configuration
}

// controller reconciles SSHClusters.
type controller struct {
	Config
	client client.Client
	// secrets reads credentials without a cache, which would retain them.
	secrets client.Reader
	writer  *kube.Writer
	states  *states
	// noHosted is set if the management cluster had no kind HostedControlPlane when the manager started.
	noHosted bool
	now      func() time.Time
}

// Add adds the controller to the manager. Package ssh calls it.
func Add(s reconciler.Setup, cfg Config) error {
	c := &controller{Config: cfg, client: s.Manager.GetClient(), secrets: s.Manager.GetAPIReader(), states: newStates(), now: s.Clock()}
	b := s.Builder(Name, &infrav1.SSHCluster{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster), builder.WithPredicates(watches.ClusterChanged())).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.ofMember), builder.WithPredicates(memberChanged())).
		Watches(&infrav1.SSHMachine{}, handler.EnqueueRequestsFromMapFunc(c.ofMember), builder.WithPredicates(memberChanged())).
		Watches(&infrav1.SSHHost{}, handler.EnqueueRequestsFromMapFunc(inventory.EnqueueAll(c.client, func() client.ObjectList { return &infrav1.SSHClusterList{} })),
			builder.WithPredicates(inventory.OfferChanged()))
	hosted, err := infrastructure.HasHostedControlPlanes(s.Manager.GetRESTMapper())
	if err != nil {
		return err
	}
	if c.noHosted = !hosted; hosted {
		b = b.Watches(&controlplanev1.HostedControlPlane{}, handler.EnqueueRequestsFromMapFunc(c.ofMember),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer = r.Writer
	managed := infrastructure.ManagedReconciler{
		Inner: r, Client: c.client, Finalizer: infrav1.SSHClusterFinalizer,
		New:      func() client.Object { return &infrav1.SSHCluster{} },
		HasOwner: func(o client.Object) bool { return ownerName(o) != "" },
	}
	return b.Complete(&inventory.Fair{Next: managed, Workers: s.Concurrency, Now: c.now})
}

func (c *controller) definition() reconciler.Controller[*infrav1.SSHCluster, snapshot] {
	return reconciler.Controller[*infrav1.SSHCluster, snapshot]{
		Name: Name, Finalizer: infrav1.SSHClusterFinalizer,
		New:     func() *infrav1.SSHCluster { return &infrav1.SSHCluster{} },
		Observe: c.observe, Decide: decide, Act: c.act, Report: report, Read: c.readRequested, OnDeleted: c.states.forget,
	}
}

// ownerName returns the name of the Cluster that owns the object, empty if none does.
func ownerName(o metav1.Object) string { return infrastructure.OwnerName(o, "Cluster") }

// ofCluster enqueues the SSHCluster that a Cluster refers to.
func ofCluster(_ context.Context, o client.Object) []reconcile.Request {
	ref := o.(*clusterv1.Cluster).Spec.InfrastructureRef
	if ref.Kind != kind || ref.APIGroup != infrav1.GroupVersion.Group {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name}}}
}

// ofMember enqueues the SSHCluster of the Cluster of an object, such as a HostedControlPlane or a Machine.
func (c *controller) ofMember(ctx context.Context, o client.Object) []reconcile.Request {
	cluster := &clusterv1.Cluster{}
	if c.client.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: watches.ClusterOf(o)}, cluster) != nil {
		return nil
	}
	return ofCluster(ctx, cluster)
}

// memberChanged selects events of Machines and SSHMachines that can change the hosts of a virtual IP address.
func memberChanged() predicate.Predicate {
	type relevant struct {
		deleting, prepared, bootstrapping bool
		host                              infrav1.SSHHostReference
	}
	of := func(o client.Object) relevant {
		out := relevant{deleting: !o.GetDeletionTimestamp().IsZero()}
		switch o := o.(type) {
		case *clusterv1.Machine:
			out.bootstrapping = o.Spec.Bootstrap.DataSecretName != nil
		case *infrav1.SSHMachine:
			out.prepared, out.host = condition.Set(o.Status.Conditions).IsTrue(infrav1.HostPreparedCondition), ptr.Deref(o.Status.HostRef, infrav1.SSHHostReference{})
		}
		return out
	}
	return predicate.Funcs{
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return of(e.ObjectOld) != of(e.ObjectNew) },
	}
}
