package topology

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/topology"
)

// Name is the name of the controller. Its field manager for Clusters is "slipway-clustertopology", which owns fields of
// existing objects; another name would leave them without an owner.
const Name = "clustertopology"

// fieldManager is the field manager for all fields that a topology sets (capi-topology). Cluster API's own controller
// uses the same one, so that either implementation continues with the objects of the other.
const fieldManager = kube.CoreManagerPrefix + "topology"

// classField is the index of Clusters by their ClusterClass.
const classField = Name + ".class"

// controller reconciles the topologies of Clusters.
type controller struct {
	client client.Client
	// live reads from the API server.
	live   client.Reader
	used   *clone.Usage
	refs   *kube.References
	writer *kube.Writer
	// applier writes with the field manager of topologies.
	applier  *kube.Writer
	attempts topology.Attempts
	created  createdWorkers
	classes  *topology.Classes
	// extensions is nil if the Runtime SDK is disabled.
	extensions hook.Client
	now        func() time.Time
}

// Add adds the topology controller with its indexes and watches to a manager. Package manager calls it when the manager
// starts, and `slipway plan` for a manager in memory, if the feature gate ClusterTopology is enabled. If extensions is
// nil, classes that reference extensions cannot be used.
func Add(s reconciler.Setup, extensions hook.Client) error {
	c := &controller{client: s.Manager.GetClient(), live: s.Manager.GetAPIReader(), used: clone.NewUsage(s.Manager.GetAPIReader()), classes: topology.NewClasses(), extensions: extensions, now: s.Clock()}
	if err := watches.IndexByCluster(s.Manager.GetFieldIndexer(), Name, &clusterv1.MachineDeployment{}, &clusterv1.MachinePool{}, &clusterv1.MachineSet{}, &clusterv1.MachineHealthCheck{}); err != nil {
		return err
	}
	if err := s.Manager.GetFieldIndexer().IndexField(context.Background(), &clusterv1.Cluster{}, classField, classNames); err != nil {
		return err
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer, c.applier = r.Writer, r.Writer.WithManager(fieldManager)
	member := handler.EnqueueRequestsFromMapFunc(clusterOfMember)
	changes := make(chan event.GenericEvent, 1)
	if registry, ok := extensions.(interface{ OnHandlers(func(string)) }); ok {
		registry.OnHandlers(func(extension string) { notify(changes, extension) })
	}
	built, err := ctrl.NewControllerManagedBy(s.Manager).Named(Name).WithOptions(s.Options()).
		For(&clusterv1.Cluster{}, builder.WithPredicates(s.Filter(), predicate.NewPredicateFuncs(hasTopology))).
		Watches(&clusterv1.ClusterClass{}, handler.EnqueueRequestsFromMapFunc(c.clustersOfClass)).
		Watches(&clusterv1.MachineDeployment{}, member).
		Watches(&clusterv1.MachinePool{}, member).
		Watches(&clusterv1.MachineHealthCheck{}, member, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(changes, handler.EnqueueRequestsFromMapFunc(c.waitingClusters))).
		Build(r)
	if err != nil {
		return err
	}
	c.refs, err = s.References(Name, built, watches.Referrers{
		New:     func() client.Object { return &clusterv1.Cluster{} },
		NewList: func() client.ObjectList { return &clusterv1.ClusterList{} }, Also: c.clustersOfProviderObject,
	})
	if err != nil {
		return err
	}
	c.refs.IndexedBy(s.Manager.GetFieldIndexer(), Name, clusterv1.ClusterNameLabel)
	return nil
}

func (c *controller) definition() reconciler.Controller[*clusterv1.Cluster, snapshot] {
	return reconciler.Controller[*clusterv1.Cluster, snapshot]{
		// The Cluster controller adds and removes its finalizer: if both controllers added it, one of them would get a
		// conflict every time. While a Cluster is being deleted, this controller therefore always has a wait.
		Name: Name, Finalizer: clusterv1.ClusterFinalizer, DeferFinalizer: func(*clusterv1.Cluster) bool { return true },
		WhilePaused: func(cluster *clusterv1.Cluster) reconciler.WhilePaused {
			if !cluster.Spec.Topology.IsDefined() {
				return reconciler.WhilePaused{}
			}
			return reconciler.WhilePaused{False: []string{clusterv1.ClusterTopologyReconciledCondition}}
		},
		New:     func() *clusterv1.Cluster { return &clusterv1.Cluster{} },
		Observe: c.observe, Decide: decide, Read: c.answer, Act: c.act, Report: report, ReportFailure: unread, OnDeleted: c.gone,
	}
}

// gone removes the records of a deleted Cluster.
func (c *controller) gone(_ context.Context, key client.ObjectKey) error {
	c.created.forget(key, func(worker) bool { return true })
	return nil
}

func hasTopology(o client.Object) bool {
	cluster, ok := o.(*clusterv1.Cluster)
	return ok && cluster.Spec.Topology.IsDefined()
}

func classNames(o client.Object) []string {
	cluster, ok := o.(*clusterv1.Cluster)
	if !ok || cluster.Spec.Topology.ClassRef.Name == "" {
		return nil
	}
	return []string{topology.ClassKey(cluster).String()}
}

// clustersOfClass enqueues the Clusters of a class.
func (c *controller) clustersOfClass(ctx context.Context, class client.Object) []reconcile.Request {
	return c.clustersOf(ctx, client.ObjectKeyFromObject(class))
}

func (c *controller) clustersOf(ctx context.Context, class client.ObjectKey) []reconcile.Request {
	list := &clusterv1.ClusterList{}
	if err := c.client.List(ctx, list, client.MatchingFields{classField: class.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return watches.Requests(list)
}

// clustersOfProviderObject enqueues the Cluster of a provider object, or the Clusters of the classes that own a
// template.
func (c *controller) clustersOfProviderObject(ctx context.Context, o client.Object) []reconcile.Request {
	if requests := clusterOfMember(ctx, o); len(requests) > 0 {
		return requests
	}
	var out []reconcile.Request
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == "ClusterClass" {
			out = append(out, c.clustersOf(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name})...)
		}
	}
	return out
}

// notify adds an event for an extension. If an event is already pending, it has the same effect.
func notify(events chan<- event.GenericEvent, extension string) {
	select {
	case events <- event.GenericEvent{Object: &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: extension}}}:
	default:
	}
}

// waitingClusters enqueues the Clusters whose topologies are not reconciled, because they may wait for the
// extensions that changed.
func (c *controller) waitingClusters(ctx context.Context, _ client.Object) []reconcile.Request {
	list := &clusterv1.ClusterList{}
	if err := c.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	waiting := &clusterv1.ClusterList{}
	for _, cluster := range list.Items {
		if hasTopology(&cluster) && !condition.Set(cluster.Status.Conditions).IsTrue(clusterv1.ClusterTopologyReconciledCondition) {
			waiting.Items = append(waiting.Items, cluster)
		}
	}
	return watches.Requests(waiting)
}

// clusterOfMember enqueues the Cluster whose topology an object belongs to.
func clusterOfMember(_ context.Context, o client.Object) []reconcile.Request {
	labels := o.GetLabels()
	if _, ok := labels[clusterv1.ClusterTopologyOwnedLabel]; !ok || labels[clusterv1.ClusterNameLabel] == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: labels[clusterv1.ClusterNameLabel]}}}
}
