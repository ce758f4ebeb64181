package cluster

import (
	"context"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
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

// Settings are the settings of the controller.
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
	r := reconciler.NewReconciler(s, c.definition())
	c.writer = r.Writer
	ours := handler.EnqueueRequestsFromMapFunc(clusterOf)
	built, err := s.Builder(Name, &clusterv1.Cluster{}).
		Watches(&clusterv1.MachineDeployment{}, ours).
		Watches(&clusterv1.MachineSet{}, ours).
		Watches(&clusterv1.MachinePool{}, ours).
		Watches(&clusterv1.Machine{}, ours).
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

func (c *controller) definition() reconciler.Controller[*clusterv1.Cluster, Snapshot] {
	return reconciler.Controller[*clusterv1.Cluster, Snapshot]{
		Name: Name, Finalizer: clusterv1.ClusterFinalizer,
		New:     func() *clusterv1.Cluster { return &clusterv1.Cluster{} },
		Observe: c.observe, Decide: Decide, Act: c.act, Report: Report,
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
