package machinepool

import (
	"context"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Name is the name of the controller. Its field manager is "slipway-machinepool", which owns the fields of existing
// Machines; another name would leave them without an owner.
const Name = "machinepool"

// workloads provides access to workload clusters.
type workloads interface {
	Client(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
	Nodes(ctx context.Context, cluster client.ObjectKey, providerID string) ([]corev1.Node, error)
	Watch(ctx context.Context, cluster client.ObjectKey, w workload.WatchRequest) error
}

// Settings are the settings of the controller. Package manager fills them.
type Settings struct {
	// Policy limits what the controller may do. The zero value allows everything.
	Policy policy.Configuration
	// SyncLabels match additional labels of the template that are synchronized to Nodes.
	SyncLabels []*regexp.Regexp
}

// controller reconciles MachinePools.
type controller struct {
	client client.Client
	// live reads from the API server.
	live      client.Reader
	refs      *kube.References
	workloads workloads
	writer    *kube.Writer
	settings  Settings
	now       func() time.Time
}

// Add adds the MachinePool controller with its indexes and watches to a manager. Package manager calls it when the
// manager starts, and `slipway plan` for a manager in memory, if the feature gate MachinePool is enabled.
func Add(s reconciler.Setup, clusters workload.Workloads, settings Settings) error {
	c := &controller{client: s.Manager.GetClient(), live: s.Manager.GetAPIReader(), workloads: clusters, settings: settings, now: s.Clock()}
	if err := watches.IndexByCluster(s.Manager.GetFieldIndexer(), Name, &clusterv1.MachinePool{}, &clusterv1.Machine{}); err != nil {
		return err
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer = r.Writer
	built, err := s.Builder(Name, &clusterv1.MachinePool{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.poolOfMember)). // includes Machines that lost their owner
		Watches(&clusterv1.Cluster{}, watches.EnqueueMembers(c.client, Name, newList), builder.WithPredicates(watches.ClusterChanged())).
		WatchesRawSource(clusters.Changed(Name, c.poolsOf)).
		Build(r)
	if err != nil {
		return err
	}
	c.refs, err = s.References(Name, built, watches.Referrers{
		New: func() client.Object { return &clusterv1.MachinePool{} }, NewList: newList, Refs: references, Also: c.poolOfMember,
	})
	if err != nil {
		return err
	}
	c.refs.IndexedBy(s.Manager.GetFieldIndexer(), Name, clusterv1.MachinePoolNameLabel)
	return nil
}

func (c *controller) definition() reconciler.Controller[*clusterv1.MachinePool, snapshot] {
	return reconciler.Controller[*clusterv1.MachinePool, snapshot]{
		Name: Name, Finalizer: clusterv1.MachinePoolFinalizer,
		New:     func() *clusterv1.MachinePool { return &clusterv1.MachinePool{} },
		Adopt:   c.enter,
		Observe: c.observe, Decide: decide, Act: c.act, Report: report,
	}
}

// enter joins a new pool to its Cluster in the write that adds the finalizer.
func (c *controller) enter(ctx context.Context, pool *clusterv1.MachinePool) (func(client.Object), error) {
	s := snapshot{Pool: pool}
	if err := c.readCluster(ctx, &s); err != nil || s.Cluster == nil {
		return nil, err
	}
	return func(o client.Object) { ownership.AddToCluster(o, s.Cluster) }, nil
}

func newList() client.ObjectList { return &clusterv1.MachinePoolList{} }

func references(o client.Object) []clusterv1.ContractVersionedObjectReference {
	template := o.(*clusterv1.MachinePool).Spec.Template.Spec
	return []clusterv1.ContractVersionedObjectReference{template.InfrastructureRef, template.Bootstrap.ConfigRef}
}

// poolsOf enqueues the pools of a cluster.
func (c *controller) poolsOf(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
	return c.pools(ctx, cluster, func(*clusterv1.MachinePool) bool { return true })
}

func (c *controller) pools(ctx context.Context, cluster client.ObjectKey, keep func(*clusterv1.MachinePool) bool) []reconcile.Request {
	list := &clusterv1.MachinePoolList{}
	err := c.client.List(ctx, list, watches.InCluster(Name, cluster)...)
	if err != nil {
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

// poolOfMember enqueues the pool in the label of a Machine or an infrastructure machine.
func (c *controller) poolOfMember(ctx context.Context, o client.Object) []reconcile.Request {
	value, ok := o.GetLabels()[clusterv1.MachinePoolNameLabel]
	if !ok {
		return nil
	}
	cluster := client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetLabels()[clusterv1.ClusterNameLabel]}
	return c.pools(ctx, cluster, func(pool *clusterv1.MachinePool) bool { return contract.LabelValue(pool.Name) == value })
}

// watchNodes makes changes of Nodes enqueue their pool. readNodes calls it before it reads Nodes.
func (c *controller) watchNodes(ctx context.Context, cluster client.ObjectKey) error {
	return c.workloads.Watch(ctx, cluster, workload.WatchRequest{
		Controller: Name, Kind: &corev1.Node{}, Changed: nodeMatters,
		Map: func(ctx context.Context, o client.Object) []reconcile.Request {
			id := o.(*corev1.Node).Spec.ProviderID
			return c.pools(ctx, cluster, func(pool *clusterv1.MachinePool) bool {
				return slices.Contains(pool.Spec.ProviderIDList, id)
			})
		},
	})
}

// nodeMatters reports whether a change of a Node affects its pool. It ignores heartbeats, and labels and annotations:
// a later reconciliation restores the ones that mark (decide.go) sets.
func nodeMatters(before, after client.Object) bool {
	b, a := before.(*corev1.Node), after.(*corev1.Node)
	return b.Spec.ProviderID != a.Spec.ProviderID || nodeReady(b) != nodeReady(a) ||
		b.Status.NodeInfo.KubeletVersion != a.Status.NodeInfo.KubeletVersion || len(b.Spec.Taints) != len(a.Spec.Taints)
}
