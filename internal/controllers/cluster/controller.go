package cluster

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/workload"
)

// Name is the name of the controller. Its field manager is "slipway-cluster", which owns fields of existing objects;
// another name would leave them without an owner.
const Name = "cluster"

// DefaultConnectionGrace is how long a workload cluster may be unreachable before RemoteConnectionProbe reports it.
const DefaultConnectionGrace = 50 * time.Second

// Settings are the settings of the controller. Package manager fills them.
type Settings struct {
	// ConnectionGrace is how long a workload cluster may be unreachable. Zero means DefaultConnectionGrace.
	ConnectionGrace time.Duration
	// DeleteHook makes the deletion of Clusters with a topology wait for the annotation
	// runtime.cluster.x-k8s.io/ok-to-delete. Set it if the Runtime SDK and topologies are enabled.
	DeleteHook bool
}

// connections reports the health of the connections to workload clusters.
type connections interface {
	Health(cluster client.ObjectKey) workload.Health
}

// controller reconciles Clusters.
type controller struct {
	client      client.Client
	refs        *kube.References
	connections connections
	writer      *kube.Writer
	settings    Settings
	scope       watches.Scope
	now         func() time.Time
}

// Add adds the Cluster controller with its indexes and watches to a manager. Package manager calls it when the manager
// starts, and `slipway plan` for a manager in memory.
func Add(s reconciler.Setup, clusters workload.Workloads, settings Settings) error {
	c := &controller{client: s.Manager.GetClient(), connections: clusters, settings: settings.withDefaults(), scope: s.Scope(), now: s.Clock()}
	if err := watches.IndexByCluster(s.Manager.GetFieldIndexer(), Name, &clusterv1.MachineDeployment{}, &clusterv1.MachinePool{}, &clusterv1.MachineSet{}, &clusterv1.Machine{}); err != nil {
		return err
	}
	if err := s.Manager.GetFieldIndexer().IndexField(context.Background(), &clusterv1.Cluster{}, gatesField, classOfGates); err != nil {
		return err
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer = r.Writer
	ours := handler.EnqueueRequestsFromMapFunc(clusterOf)
	built, err := s.Builder(Name, &clusterv1.Cluster{}).
		Watches(&clusterv1.MachineDeployment{}, ours).
		Watches(&clusterv1.MachineSet{}, ours).
		Watches(&clusterv1.MachinePool{}, ours).
		Watches(&clusterv1.Machine{}, ours).
		Watches(&clusterv1.ClusterClass{}, handler.EnqueueRequestsFromMapFunc(c.clustersWithGatesOf), builder.WithPredicates(gatesChanged())).
		WatchesRawSource(clusters.Changed(Name, nil)).
		Build(r)
	if err != nil {
		return err
	}
	c.refs, err = s.References(Name, built, watches.Referrers{
		New:     func() client.Object { return &clusterv1.Cluster{} },
		NewList: func() client.ObjectList { return &clusterv1.ClusterList{} }, Refs: references,
	})
	return err
}

func (s Settings) withDefaults() Settings {
	if s.ConnectionGrace == 0 {
		s.ConnectionGrace = DefaultConnectionGrace
	}
	return s
}

func (c *controller) definition() reconciler.Controller[*clusterv1.Cluster, snapshot] {
	return reconciler.Controller[*clusterv1.Cluster, snapshot]{
		Name: Name, Finalizer: clusterv1.ClusterFinalizer,
		New:     func() *clusterv1.Cluster { return &clusterv1.Cluster{} },
		Observe: c.observe, Decide: decide, Act: c.act, Report: report,
	}
}

func references(o client.Object) []clusterv1.ContractVersionedObjectReference {
	spec := o.(*clusterv1.Cluster).Spec
	return []clusterv1.ContractVersionedObjectReference{spec.InfrastructureRef, spec.ControlPlaneRef}
}

// clusterOf returns a request for the Cluster in the object's cluster label.
func clusterOf(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
}

// gatesField is the index of Clusters by the ClusterClass whose availability gates apply to them.
const gatesField = Name + ".gates"

// classOfGates returns the class of a Cluster without availability gates of its own.
func classOfGates(o client.Object) []string {
	if key, is := gatesClass(o.(*clusterv1.Cluster)); is {
		return []string{key.String()}
	}
	return nil
}

// gatesClass returns the ClusterClass whose availability gates apply to a Cluster, if any. The index of Clusters by
// class and the read of the gates (observe.go) must agree, so both use it.
func gatesClass(cluster *clusterv1.Cluster) (client.ObjectKey, bool) {
	ref := cluster.Spec.Topology.ClassRef
	if len(cluster.Spec.AvailabilityGates) > 0 || ref.Name == "" {
		return client.ObjectKey{}, false
	}
	return client.ObjectKey{Namespace: cmp.Or(ref.Namespace, cluster.Namespace), Name: ref.Name}, true
}

// clustersWithGatesOf enqueues the Clusters to which the availability gates of a class apply.
func (c *controller) clustersWithGatesOf(ctx context.Context, class client.Object) []reconcile.Request {
	list := &clusterv1.ClusterList{}
	if err := c.client.List(ctx, list, client.MatchingFields{gatesField: client.ObjectKeyFromObject(class).String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return watches.Requests(list)
}

// gatesChanged selects the ClusterClasses that are created, because a class can be restored after its Clusters, and the
// updates that change the availability gates.
func gatesChanged() predicate.Predicate {
	return predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*clusterv1.ClusterClass)
			after, ok2 := e.ObjectNew.(*clusterv1.ClusterClass)
			return ok && ok2 && !equality.Semantic.DeepEqual(before.Spec.AvailabilityGates, after.Spec.AvailabilityGates)
		},
	}
}
