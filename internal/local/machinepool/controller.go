package machinepool

import (
	"context"
	"time"

	kubeevents "k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

// Name is the name of the controller. Its field manager is "slipway-local-machinepool", which owns fields of existing
// objects, so it must not change.
const Name = "local-machinepool"

// controller reconciles LocalMachinePools.
type controller struct {
	client client.Client
	// live reads from the API server without the cache.
	live   client.Reader
	writer *kube.Writer
	events kubeevents.EventRecorder
	// nodes computes the capacity of a pool's nodes and has the operator's configuration.
	nodes backend.CapacityCalculator
	now   func() time.Time
}

// Add adds the LocalMachinePool controller with its watches to the manager. Package local calls it. nodes computes the
// capacity of a pool's nodes and has the operator's configuration.
func Add(s reconciler.Setup, nodes backend.CapacityCalculator) error {
	c := &controller{client: s.Manager.GetClient(), live: s.Manager.GetAPIReader(), nodes: nodes, now: s.Clock()}
	if err := watches.IndexByCluster(s.Manager.GetFieldIndexer(), Name, &infrav1.LocalMachinePool{}); err != nil {
		return err
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer, c.events = r.Writer, r.Events
	return s.Builder(Name, &infrav1.LocalMachinePool{}).
		Watches(&clusterv1.MachinePool{}, handler.EnqueueRequestsFromMapFunc(ofPool), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&infrav1.LocalMachine{}, handler.EnqueueRequestsFromMapFunc(ofLocalMachine)).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.ofMachine), builder.WithPredicates(markedOrChanged())).
		Watches(&clusterv1.Cluster{}, watches.EnqueueMembers(c.client, Name, newList), builder.WithPredicates(watches.ClusterChanged())).
		Complete(c.gated(r))
}

func (c *controller) definition() reconciler.Controller[*infrav1.LocalMachinePool, snapshot] {
	return reconciler.Controller[*infrav1.LocalMachinePool, snapshot]{
		Name: Name, Finalizer: infrav1.LocalMachinePoolFinalizer,
		New:     func() *infrav1.LocalMachinePool { return &infrav1.LocalMachinePool{} },
		Observe: c.observe, Decide: decide, Act: c.act, Report: report,
		Read: func(ctx context.Context, s snapshot, _ reconciler.ReadRequest) (snapshot, error) {
			return c.readLiveMembers(ctx, s)
		},
	}
}

// gated skips objects that are managed externally or have no owner.
func (c *controller) gated(inner reconcile.Reconciler) infrastructure.ManagedReconciler {
	return infrastructure.ManagedReconciler{
		Inner: inner, Client: c.client, Finalizer: infrav1.LocalMachinePoolFinalizer,
		New:      func() client.Object { return &infrav1.LocalMachinePool{} },
		HasOwner: func(o client.Object) bool { return ownerName(o) != "" },
	}
}

// markedOrChanged selects updates of Machines that change their deletion priority, start their deletion or request
// their replacement.
func markedOrChanged() predicate.Predicate {
	replaced := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*clusterv1.Machine)
		after, ok2 := e.ObjectNew.(*clusterv1.Machine)
		return ok && ok2 && needsRemediation(before) != needsRemediation(after)
	}}
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, replaced)
}

func newList() client.ObjectList { return &infrav1.LocalMachinePoolList{} }

// ofPool enqueues the LocalMachinePool that a MachinePool refers to.
func ofPool(_ context.Context, o client.Object) []reconcile.Request {
	ref := o.(*clusterv1.MachinePool).Spec.Template.Spec.InfrastructureRef
	if ref.Kind != "LocalMachinePool" || ref.APIGroup != infrav1.GroupVersion.Group {
		return nil
	}
	return request(o.GetNamespace(), ref.Name)
}

// ofLocalMachine enqueues the pool that created a LocalMachine.
func ofLocalMachine(_ context.Context, o client.Object) []reconcile.Request {
	return request(o.GetNamespace(), o.GetAnnotations()[backend.PoolAnnotation])
}

// ofMachine enqueues the pool of a Machine's LocalMachine.
func (c *controller) ofMachine(ctx context.Context, o client.Object) []reconcile.Request {
	ref := o.(*clusterv1.Machine).Spec.InfrastructureRef
	if ref.Kind != localMachineKind || ref.APIGroup != infrav1.GroupVersion.Group {
		return nil
	}
	m := &infrav1.LocalMachine{}
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name}, m); err != nil {
		return nil
	}
	return ofLocalMachine(ctx, m)
}

func request(namespace, name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
}
