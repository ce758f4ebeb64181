package machine

import (
	"context"
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	slipwayworkload "github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Name is the name of the controller. Its field manager is "slipway-machine", which owns fields of existing objects;
// another name would leave them without an owner.
const Name = "machine"

// DefaultConditionsGrace is how long the Node conditions retain their last value while the workload cluster is
// unreachable.
const DefaultConditionsGrace = 5 * time.Minute

// Settings are the settings of the controller. Package manager fills them from the flags of the manager.
type Settings struct {
	// ConditionsGrace is how long the Node conditions retain their last value. Zero means DefaultConditionsGrace.
	ConditionsGrace time.Duration
	// SyncLabels and SyncAnnotations match the keys of additional metadata to synchronize from Machines to Nodes.
	SyncLabels, SyncAnnotations []*regexp.Regexp
	// TaintPropagation synchronizes spec.taints to Nodes (feature gate MachineTaintPropagation).
	TaintPropagation bool
	// VolumeAttachments makes deletions wait for VolumeAttachments in addition to the volumes that a Node reports
	// (feature gate MachineWaitForVolumeDetachConsiderVolumeAttachments).
	VolumeAttachments bool
	// InPlaceUpdates lets extensions update Machines (feature gate InPlaceUpdates).
	InPlaceUpdates bool
}

// workloads provides access to workload clusters.
type workloads interface {
	Client(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
	Nodes(ctx context.Context, cluster client.ObjectKey, providerID string) ([]corev1.Node, error)
	Watch(ctx context.Context, cluster client.ObjectKey, w slipwayworkload.WatchRequest) error
	Health(cluster client.ObjectKey) slipwayworkload.Health
}

// controller reconciles Machines.
type controller struct {
	client    client.Client
	refs      *kube.References
	workloads workloads
	writer    *kube.Writer
	settings  Settings
	now       func() time.Time
	// caller calls the extensions that update Machines in place.
	caller inplace.Caller
}

// Indexes of Machines. With them the controller finds the Machine of a Node, and the Machines of an owner or a
// Cluster, without listing the Machines of all other Clusters.
const (
	byProviderID = "machine/spec.providerID"
	byNodeName   = "machine/status.nodeRef.name"
	byCluster    = "machine/spec.clusterName"
	bySet        = "machine/set-name"
	byDeployment = "machine/deployment-name"
)

// Add adds the Machine controller with its indexes and watches to a manager. Package manager calls it when the manager
// starts, and `slipway plan` for a manager in memory. If extensions is nil, no Machine is updated in place.
func Add(s reconciler.Setup, clusters slipwayworkload.Workloads, extensions hook.Client, settings Settings) error {
	c := &controller{client: s.Manager.GetClient(), workloads: clusters, settings: settings.withDefaults(), now: s.Clock()}
	c.caller = inplace.Caller{Client: extensions, Failed: &inplace.FailedCalls{}, Now: c.now}
	for field, value := range indexes() {
		if err := s.Manager.GetFieldIndexer().IndexField(context.Background(), &clusterv1.Machine{}, field, value); err != nil {
			return fmt.Errorf("index Machines by %s: %w", field, err)
		}
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer = r.Writer
	built, err := s.Builder(Name, &clusterv1.Machine{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return c.ofCluster(ctx, client.ObjectKeyFromObject(o))
		}), builder.WithPredicates(watches.ClusterChanged())).
		Watches(&clusterv1.MachineSet{}, c.indexed(bySet), builder.WithPredicates(ownerMatters())).
		Watches(&clusterv1.MachineDeployment{}, c.indexed(byDeployment), builder.WithPredicates(ownerMatters())).
		WatchesRawSource(clusters.Changed(Name, c.ofCluster)).
		Build(r)
	if err != nil {
		return err
	}
	c.refs, err = s.References(Name, built, referrers())
	return err
}

// referrers describes Machines as the objects that reference provider objects.
func referrers() watches.Referrers {
	return watches.Referrers{New: func() client.Object { return &clusterv1.Machine{} }, NewList: newList, Refs: references}
}

func (s Settings) withDefaults() Settings {
	if s.ConditionsGrace == 0 {
		s.ConditionsGrace = DefaultConditionsGrace
	}
	return s
}

func indexes() map[string]client.IndexerFunc {
	of := func(value func(*clusterv1.Machine) string) client.IndexerFunc {
		return func(o client.Object) []string { return nonEmpty(value(o.(*clusterv1.Machine))) }
	}
	return map[string]client.IndexerFunc{
		byProviderID: of(func(m *clusterv1.Machine) string { return m.Spec.ProviderID }),
		byNodeName:   of(func(m *clusterv1.Machine) string { return m.Status.NodeRef.Name }),
		byCluster:    of(func(m *clusterv1.Machine) string { return m.Spec.ClusterName }),
		bySet:        of(func(m *clusterv1.Machine) string { return m.Labels[clusterv1.MachineSetNameLabel] }),
		byDeployment: of(func(m *clusterv1.Machine) string { return m.Labels[clusterv1.MachineDeploymentNameLabel] }),
	}
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func (c *controller) definition() reconciler.Controller[*clusterv1.Machine, snapshot] {
	return reconciler.Controller[*clusterv1.Machine, snapshot]{
		Name: Name, Finalizer: clusterv1.MachineFinalizer,
		New:     func() *clusterv1.Machine { return &clusterv1.Machine{} },
		Adopt:   c.enter,
		Observe: c.observe, Decide: decide, Read: c.answer, Act: c.act, Report: report,
	}
}

// enter joins a new Machine to its Cluster in the write that adds the finalizer.
func (c *controller) enter(ctx context.Context, m *clusterv1.Machine) (func(client.Object), error) {
	s := snapshot{Machine: m}
	if err := c.readCluster(ctx, &s); err != nil || s.Cluster == nil {
		return nil, err
	}
	return func(o client.Object) { join(s, o) }, nil
}

func newList() client.ObjectList { return &clusterv1.MachineList{} }

func references(o client.Object) []clusterv1.ContractVersionedObjectReference {
	spec := o.(*clusterv1.Machine).Spec
	return []clusterv1.ContractVersionedObjectReference{spec.InfrastructureRef, spec.Bootstrap.ConfigRef}
}

// ofCluster enqueues the Machines of a cluster.
func (c *controller) ofCluster(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
	return c.list(ctx, cluster.Namespace, byCluster, cluster.Name)
}

// indexed enqueues the Machines whose label for the index contains the name of the object.
func (c *controller) indexed(index string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(c.ofOwner(index))
}

func (c *controller) ofOwner(index string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return c.list(ctx, o.GetNamespace(), index, contract.LabelValue(o.GetName()))
	}
}

// list returns requests for the Machines in a namespace that have this value in an index.
func (c *controller) list(ctx context.Context, namespace, index, value string) []reconcile.Request {
	return c.requests(ctx, namespace, client.MatchingFields{index: value}, func(*clusterv1.Machine) bool { return true })
}

// requests returns requests for the indexed Machines for which keep returns true. They are not copied from the
// cache.
func (c *controller) requests(
	ctx context.Context, namespace string, by client.MatchingFields, keep func(*clusterv1.Machine) bool,
) []reconcile.Request {
	list := &clusterv1.MachineList{}
	if err := c.client.List(ctx, list, client.InNamespace(namespace), by, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if keep(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// watchNodes makes changes of Nodes enqueue their Machine. readNode calls it once the control plane is initialized;
// package workload starts the watch only once for each connection.
func (c *controller) watchNodes(ctx context.Context, cluster client.ObjectKey) error {
	return c.workloads.Watch(ctx, cluster, slipwayworkload.WatchRequest{
		Controller: Name, Kind: &corev1.Node{}, Changed: nodeMatters,
		Map: func(ctx context.Context, o client.Object) []reconcile.Request { return c.ofNode(ctx, cluster, o) },
	})
}

// ofNode enqueues the Machine of a Node. It uses the Node's annotation or, if there is none, the Machines' node
// reference and provider ID.
func (c *controller) ofNode(ctx context.Context, cluster client.ObjectKey, o client.Object) []reconcile.Request {
	node := o.(*corev1.Node)
	a := node.Annotations
	if a[clusterv1.ClusterNameAnnotation] == cluster.Name && a[clusterv1.ClusterNamespaceAnnotation] == cluster.Namespace && a[clusterv1.MachineAnnotation] != "" {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: cluster.Namespace, Name: a[clusterv1.MachineAnnotation]}}}
	}
	// Other clusters may have Nodes with the same name.
	ours := func(m *clusterv1.Machine) bool { return m.Spec.ClusterName == cluster.Name }
	found := c.requests(ctx, cluster.Namespace, client.MatchingFields{byNodeName: node.Name}, ours)
	if len(found) > 0 || node.Spec.ProviderID == "" {
		return found
	}
	return c.requests(ctx, cluster.Namespace, client.MatchingFields{byProviderID: node.Spec.ProviderID}, ours)
}
