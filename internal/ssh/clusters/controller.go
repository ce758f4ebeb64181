package clusters

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
)

// Name of the controller of SSHClusters.
const Name = "ssh-cluster"

// kind of the objects that the controller reconciles.
const kind = "SSHCluster"

// Config contains the options of the controller.
type Config struct {
	// Policy is the operator's configuration.
	Policy policy.Configuration
}

// controller reconciles SSHClusters.
type controller struct {
	Config
	client client.Client
	// noHosted is set if the management cluster had no kind HostedControlPlane when the manager started.
	noHosted bool
	now      func() time.Time
}

// Add adds the controller to the manager.
func Add(s reconciler.Setup, cfg Config) error {
	c := &controller{Config: cfg, client: s.Manager.GetClient(), now: s.Clock()}
	b := s.Builder(Name, &infrav1.SSHCluster{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster), builder.WithPredicates(watches.ClusterChanged())).
		Watches(&infrav1.SSHHost{}, handler.EnqueueRequestsFromMapFunc(inventory.EnqueueAll(c.client, func() client.ObjectList { return &infrav1.SSHClusterList{} })),
			builder.WithPredicates(inventory.OfferChanged()))
	hosted, err := infrastructure.HasHostedControlPlanes(s.Manager.GetRESTMapper())
	if err != nil {
		return err
	}
	if c.noHosted = !hosted; hosted {
		b = b.Watches(&controlplanev1.HostedControlPlane{}, handler.EnqueueRequestsFromMapFunc(c.ofControlPlane),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	return b.Complete(infrastructure.ManagedReconciler{
		Inner: reconciler.NewReconciler(s, c.definition()), Client: c.client, Finalizer: infrav1.SSHClusterFinalizer,
		New:      func() client.Object { return &infrav1.SSHCluster{} },
		HasOwner: func(o client.Object) bool { return ownerName(o) != "" },
	})
}

func (c *controller) definition() reconciler.Controller[*infrav1.SSHCluster, snapshot] {
	return reconciler.Controller[*infrav1.SSHCluster, snapshot]{
		Name: Name, Finalizer: infrav1.SSHClusterFinalizer,
		New:     func() *infrav1.SSHCluster { return &infrav1.SSHCluster{} },
		Observe: c.observe, Decide: decide, Act: noAction, Report: report,
	}
}

// noAction runs no action, because plans of this controller have none.
func noAction(context.Context, snapshot, reconciler.Action) error { return nil }

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

// ofControlPlane enqueues the SSHCluster of a HostedControlPlane's Cluster.
func (c *controller) ofControlPlane(ctx context.Context, o client.Object) []reconcile.Request {
	cluster := &clusterv1.Cluster{}
	if c.client.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: watches.ClusterOf(o)}, cluster) != nil {
		return nil
	}
	return ofCluster(ctx, cluster)
}
