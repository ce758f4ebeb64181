package machinehealthcheck

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/workload"
)

// Name is the name of the controller. Its field manager is "slipway-machinehealthcheck", which owns conditions of
// existing Machines; with another name the controller could not remove them.
const Name = "machinehealthcheck"

// interval is the minimum time between two reconciliations of one MachineHealthCheck. debounced (watch.go) sets it.
const interval = 5 * time.Second

// workloads provides access to workload clusters.
type workloads interface {
	Client(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
	Watch(ctx context.Context, cluster client.ObjectKey, w workload.WatchRequest) error
	Health(cluster client.ObjectKey) workload.Health
}

// controller reconciles MachineHealthChecks.
type controller struct {
	client    client.Client
	live      client.Reader // reads from the API server
	refs      *kube.References
	workloads workloads
	writer    *kube.Writer
	events    events.EventRecorder
	now       func() time.Time
	setbacks  setbacks
}

// ofCluster is the index of Machines and MachineHealthChecks by Cluster.
const ofCluster = "machinehealthcheck.clusterName"

func indexMachine(o client.Object) []string { return []string{o.(*clusterv1.Machine).Spec.ClusterName} }

func indexCheck(o client.Object) []string {
	return []string{o.(*clusterv1.MachineHealthCheck).Spec.ClusterName}
}

// Add adds the MachineHealthCheck controller with its indexes and watches to a manager. Package manager calls it when
// the manager starts, and `slipway plan` for a manager in memory.
func Add(s reconciler.Setup, clusters workload.Workloads) error {
	s = debounced(s)
	c := &controller{client: s.Manager.GetClient(), live: s.Manager.GetAPIReader(), workloads: clusters, now: s.Clock()}
	if err := s.Manager.GetFieldIndexer().IndexField(context.Background(), &clusterv1.Machine{}, ofCluster, indexMachine); err != nil {
		return fmt.Errorf("index Machines by Cluster: %w", err)
	}
	if err := s.Manager.GetFieldIndexer().IndexField(context.Background(), &clusterv1.MachineHealthCheck{}, ofCluster, indexCheck); err != nil {
		return fmt.Errorf("index MachineHealthChecks by Cluster: %w", err)
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer, c.events = r.Writer, r.Events
	built, err := s.Builder(Name, &clusterv1.MachineHealthCheck{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.ofMachine), builder.WithPredicates(machineMatters())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofClusterObject), builder.WithPredicates(clusterMatters())).
		WatchesRawSource(clusters.Changed(Name, c.ofCluster)).
		Build(r)
	if err != nil {
		return err
	}
	c.refs, err = s.References(Name, built, watches.Referrers{
		New: func() client.Object { return &clusterv1.MachineHealthCheck{} }, NewList: newList, Refs: references, Also: c.ofRequest,
	})
	return err
}

func (c *controller) definition() reconciler.Controller[*clusterv1.MachineHealthCheck, snapshot] {
	return reconciler.Controller[*clusterv1.MachineHealthCheck, snapshot]{
		Name:    Name,
		New:     func() *clusterv1.MachineHealthCheck { return &clusterv1.MachineHealthCheck{} },
		Observe: c.observe, Decide: decide, Act: c.act, Report: report,
	}
}

func newList() client.ObjectList { return &clusterv1.MachineHealthCheckList{} }

func references(o client.Object) []clusterv1.ContractVersionedObjectReference {
	return []clusterv1.ContractVersionedObjectReference{templateRef(o.(*clusterv1.MachineHealthCheck))}
}

// templateRef returns the reference to the remediation template without its version, because provider objects are
// read in the version that implements the contract.
func templateRef(check *clusterv1.MachineHealthCheck) clusterv1.ContractVersionedObjectReference {
	ref := check.Spec.Remediation.TemplateRef
	return clusterv1.ContractVersionedObjectReference{APIGroup: ref.GroupVersionKind().Group, Kind: ref.Kind, Name: ref.Name}
}

// ofCluster enqueues the health checks of a cluster.
func (c *controller) ofCluster(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
	return c.checks(ctx, cluster, func(*clusterv1.MachineHealthCheck) bool { return true })
}

func (c *controller) ofClusterObject(ctx context.Context, o client.Object) []reconcile.Request {
	return c.ofCluster(ctx, client.ObjectKeyFromObject(o))
}

// ofMachine enqueues the health checks that select a Machine.
func (c *controller) ofMachine(ctx context.Context, o client.Object) []reconcile.Request {
	m := o.(*clusterv1.Machine)
	cluster := client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}
	return c.checks(ctx, cluster, func(check *clusterv1.MachineHealthCheck) bool { return selects(check, m) })
}

// ofRequest enqueues the health checks that select the Machine of a remediation request, which has the Machine's
// name.
func (c *controller) ofRequest(ctx context.Context, o client.Object) []reconcile.Request {
	m := &clusterv1.Machine{}
	if c.client.Get(ctx, client.ObjectKeyFromObject(o), m) != nil {
		return nil
	}
	return c.ofMachine(ctx, m)
}

func (c *controller) checks(
	ctx context.Context, cluster client.ObjectKey, keep func(*clusterv1.MachineHealthCheck) bool,
) []reconcile.Request {
	list := &clusterv1.MachineHealthCheckList{}
	if c.client.List(ctx, list, inCluster(cluster)...) != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if check := &list.Items[i]; keep(check) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(check)})
		}
	}
	return out
}

// inCluster selects the objects of a Cluster through the index. They come from the cache without a copy and must
// not be changed.
func inCluster(cluster client.ObjectKey) []client.ListOption {
	return []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingFields{ofCluster: cluster.Name}, client.UnsafeDisableDeepCopy}
}

// watchNodes makes changes of Nodes enqueue the health checks of their cluster. observe calls it before it reads Nodes.
func (c *controller) watchNodes(ctx context.Context, cluster client.ObjectKey) error {
	return c.workloads.Watch(ctx, cluster, workload.WatchRequest{
		Controller: Name, Kind: &corev1.Node{}, Changed: nodeMatters,
		Map: func(ctx context.Context, _ client.Object) []reconcile.Request { return c.ofCluster(ctx, cluster) },
	})
}

// selects reports whether the health check applies to a Machine: the Machine belongs to its cluster, matches the
// selector, and is neither paused nor excluded by an annotation. An invalid selector selects nothing.
func selects(check *clusterv1.MachineHealthCheck, m *clusterv1.Machine) bool {
	for _, mark := range []string{clusterv1.MachineSkipRemediationAnnotation, clusterv1.PausedAnnotation} {
		if _, marked := m.Annotations[mark]; marked {
			return false
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
	return err == nil && !selector.Empty() && m.Namespace == check.Namespace &&
		m.Spec.ClusterName == check.Spec.ClusterName && selector.Matches(labels.Set(m.Labels))
}
