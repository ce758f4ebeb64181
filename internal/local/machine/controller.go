package machine

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
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
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/cloudinit"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

// Name is the name of the controller. Its field manager is "slipway-local-machine", which owns fields of existing
// objects, so it must not change.
const Name = "local-machine"

// sentinel is the file that the message of a failed bootstrap (status.go) names.
const sentinel = cloudinit.Sentinel

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
	// Stores are the locations of etcd snapshots, Jobs copies snapshots onto machines in the background. Nil: not
	// available.
	Stores snapshots.StoreSettings
	Jobs   *jobs.Runner
}

// controller reconciles LocalMachines.
type controller struct {
	Config
	client client.Client
	// secrets reads bootstrap data without a cache, which would retain it.
	secrets client.Reader
	writer  *kube.Writer
	events  events.EventRecorder
	stager  *stager
	now     func() time.Time
}

// Add adds the LocalMachine controller with its watches to the manager. Package local calls it.
func Add(s reconciler.Setup, cfg Config) error {
	c := &controller{
		Config: cfg, client: s.Manager.GetClient(), secrets: s.Manager.GetAPIReader(), now: s.Clock(),
		stager: &stager{Retriever: snapshots.Retriever{Client: s.Manager.GetAPIReader(), Stores: cfg.Stores}, Jobs: cfg.Jobs},
	}
	if err := watches.IndexByCluster(s.Manager.GetFieldIndexer(), Name, &infrav1.LocalMachine{}); err != nil {
		return err
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer, c.events = r.Writer, r.Events
	spec := builder.WithPredicates(predicate.GenerationChangedPredicate{}) // changes of their status are irrelevant
	b := s.Builder(Name, &infrav1.LocalMachine{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(ofMachine), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, nodeReadyChanged()))).
		Watches(&clusterv1.MachinePool{}, handler.EnqueueRequestsFromMapFunc(c.ofPool), spec).
		Watches(&clusterv1.Cluster{}, watches.EnqueueMembers(c.client, Name, newList), builder.WithPredicates(watches.ClusterChanged())).
		WatchesRawSource(cfg.Hub.Source(c.ofEvent))
	hosted, err := infrastructure.HasHostedControlPlanes(s.Manager.GetRESTMapper())
	if err != nil {
		return err
	}
	if hosted {
		b = b.Watches(&controlplanev1.HostedControlPlane{}, handler.EnqueueRequestsFromMapFunc(c.ofControlPlane), builder.WithPredicates(versionChanged()))
	}
	return b.Complete(r)
}

// versionChanged selects updates of HostedControlPlanes that change the Kubernetes version they run, which limits the
// versions of new machines.
func versionChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*controlplanev1.HostedControlPlane)
		after, ok2 := e.ObjectNew.(*controlplanev1.HostedControlPlane)
		return ok && ok2 && before.Status.Version != after.Status.Version
	}}
}

// ofControlPlane enqueues the LocalMachines of a HostedControlPlane's Cluster.
func (c *controller) ofControlPlane(ctx context.Context, o client.Object) []reconcile.Request {
	return c.ofClusterNamed(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: watches.ClusterOf(o)})
}

// ofClusterNamed enqueues the LocalMachines of a Cluster.
func (c *controller) ofClusterNamed(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
	list := newList()
	if cluster.Name == "" || c.client.List(ctx, list, watches.InCluster(Name, cluster)...) != nil {
		return nil
	}
	return watches.Requests(list)
}

func (c *controller) definition() reconciler.Controller[*infrav1.LocalMachine, snapshot] {
	return reconciler.Controller[*infrav1.LocalMachine, snapshot]{
		Name: Name, Finalizer: infrav1.LocalMachineFinalizer,
		New: func() *infrav1.LocalMachine { return &infrav1.LocalMachine{} },
		// setProviderID adds the finalizer before anything is created.
		DeferFinalizer: func(o *infrav1.LocalMachine) bool { return o.Spec.ProviderID == "" },
		Observe:        c.observe, Decide: decide, Act: c.act, Report: report, Read: c.readRequested,
	}
}

func newList() client.ObjectList { return &infrav1.LocalMachineList{} }

// ofMachine enqueues the LocalMachine that a Machine refers to.
func ofMachine(_ context.Context, o client.Object) []reconcile.Request {
	ref := o.(*clusterv1.Machine).Spec.InfrastructureRef
	if ref.Kind != kind || ref.APIGroup != infrav1.GroupVersion.Group {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name}}}
}

// ofPool enqueues the LocalMachines of a MachinePool.
func (c *controller) ofPool(ctx context.Context, o client.Object) []reconcile.Request {
	ref := o.(*clusterv1.MachinePool).Spec.Template.Spec.InfrastructureRef
	if ref.Kind != "LocalMachinePool" || ref.APIGroup != infrav1.GroupVersion.Group {
		return nil
	}
	var list infrav1.LocalMachineList
	if err := c.client.List(ctx, &list, client.InNamespace(o.GetNamespace()),
		client.MatchingLabels{clusterv1.ClusterNameLabel: o.(*clusterv1.MachinePool).Spec.ClusterName}); err != nil {
		return nil
	}
	var out []reconcile.Request
	for _, m := range list.Items {
		if m.Annotations[poolAnnotation] == ref.Name {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&m)})
		}
	}
	return out
}

// ofEvent enqueues the LocalMachines that are affected by an event on the host.
func (c *controller) ofEvent(ctx context.Context, e backend.Event) []reconcile.Request {
	switch {
	case e.Machine.Name != "":
		return []reconcile.Request{{NamespacedName: e.Machine}}
	case e.Network != "":
		return nil
	case e.Cluster.Name == "":
		return backend.AllObjects(ctx, c.client, newList())
	}
	return c.ofClusterNamed(ctx, e.Cluster)
}
