package world

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/slipwayhq/slipway/internal/plan/memory"
	slipwayworkload "github.com/slipwayhq/slipway/internal/workload"
)

const nodeProviderID = "spec.providerID"

// Workloads simulates workload clusters that contain only Nodes. Package plan passes it to the controllers in place of
// the connections to workload clusters; the simulated [Providers] connect the clusters and add the Nodes. It implements
// Workloads of package workload.
type Workloads struct {
	world  *World
	scheme *runtime.Scheme

	mu       sync.Mutex
	clusters map[client.ObjectKey]*workload
	subs     map[string]*subscriber
}

// workload is a connected cluster.
type workload struct {
	api     *memory.API
	since   time.Time
	watches map[string]slipwayworkload.WatchRequest
}

// subscriber is a controller that watches workload clusters, and how it maps them to its objects.
type subscriber struct {
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	to    slipwayworkload.ClusterMap
}

var _ slipwayworkload.Workloads = &Workloads{}

// NewWorkloads returns the workload clusters of a world, initially disconnected. Package plan calls it for each run and
// passes the result to the controllers.
func NewWorkloads(w *World, scheme *runtime.Scheme) *Workloads {
	out := &Workloads{world: w, scheme: scheme, clusters: map[client.ObjectKey]*workload{}, subs: map[string]*subscriber{}}
	w.OnDeliver(out.deliver)
	return out
}

// Connect connects a cluster, if it is not connected yet. [Providers] calls it for a cluster that was reachable, and
// when the control plane of another one is initialized.
func (w *Workloads) Connect(cluster client.ObjectKey) {
	w.mu.Lock()
	if w.clusters[cluster] != nil {
		w.mu.Unlock()
		return
	}
	api := memory.New(memory.Options{Scheme: w.scheme, Now: w.world.Now})
	c := &workload{api: api, since: w.world.Now(), watches: map[string]slipwayworkload.WatchRequest{}}
	w.clusters[cluster] = c
	w.mu.Unlock()
	_ = api.Reader(nil).IndexField(context.Background(), &corev1.Node{}, nodeProviderID, func(o client.Object) []string {
		return []string{o.(*corev1.Node).Spec.ProviderID}
	}) // the API is new, so the index does not exist yet
	w.notify(cluster)
}

// Disconnect disconnects a cluster. [Providers] calls it when a control plane or an infrastructure cluster is removed.
func (w *Workloads) Disconnect(cluster client.ObjectKey) {
	w.mu.Lock()
	_, was := w.clusters[cluster]
	delete(w.clusters, cluster)
	w.mu.Unlock()
	if was {
		w.notify(cluster)
	}
}

func (w *Workloads) notify(cluster client.ObjectKey) {
	w.mu.Lock()
	subs := maps.Clone(w.subs)
	w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(subs)) {
		for _, r := range subs[name].to(context.Background(), cluster) {
			subs[name].queue.Add(r)
		}
	}
}

func (w *Workloads) cluster(key client.ObjectKey) (*workload, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.clusters[key]; c != nil {
		return c, nil
	}
	return nil, slipwayworkload.ErrNotConnected
}

func (w *Workloads) Client(_ context.Context, cluster client.ObjectKey) (client.Client, error) {
	c, err := w.cluster(cluster)
	if err != nil {
		return nil, err
	}
	return c.api.Client(nil), nil
}

func (w *Workloads) Nodes(ctx context.Context, cluster client.ObjectKey, providerID string) ([]corev1.Node, error) {
	c, err := w.cluster(cluster)
	if err != nil {
		return nil, err
	}
	list := &corev1.NodeList{}
	err = c.api.Reader(nil).List(ctx, list, client.MatchingFields{nodeProviderID: providerID})
	return list.Items, err
}

func (w *Workloads) Watch(_ context.Context, cluster client.ObjectKey, request slipwayworkload.WatchRequest) error {
	c, err := w.cluster(cluster)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.watches[fmt.Sprintf("%s %T", request.Controller, request.Kind)] = request
	return nil
}

func (w *Workloads) Health(cluster client.ObjectKey) slipwayworkload.Health {
	c, err := w.cluster(cluster)
	if err != nil {
		return slipwayworkload.Health{}
	}
	return slipwayworkload.Health{Connected: true, Since: c.since, LastProbeSuccess: w.world.Now()}
}

func (w *Workloads) Changed(controller string, to slipwayworkload.ClusterMap) source.Source {
	if to == nil {
		to = func(_ context.Context, key client.ObjectKey) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: key}}
		}
	}
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.subs[controller] = &subscriber{queue: queue, to: to}
		return nil
	})
}

// deliver sends the writes in all workload clusters to their watches.
func (w *Workloads) deliver() {
	w.mu.Lock()
	clusters := maps.Clone(w.clusters)
	w.mu.Unlock()
	for _, key := range slices.SortedFunc(maps.Keys(clusters), func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) }) {
		c := clusters[key]
		for _, e := range c.api.Events() {
			w.notifyWatches(c, e)
		}
	}
}

func (w *Workloads) notifyWatches(c *workload, e memory.Event) {
	w.mu.Lock()
	watches, subs := maps.Clone(c.watches), maps.Clone(w.subs)
	w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(watches)) {
		request := watches[name]
		sub := subs[request.Controller]
		before, after, err := c.api.Reader(nil).BeforeAndAfter(e, e.Kind, request.Kind)
		if err != nil || sub == nil || before != nil && after != nil && request.Changed != nil && !request.Changed(before, after) {
			continue
		}
		o := after
		if o == nil {
			o = before
		}
		for _, r := range request.Map(context.Background(), o) {
			sub.queue.Add(r)
		}
	}
}

// Node is the Node of a Machine or of an instance of a pool.
type Node struct {
	Name, ProviderID, Version string
	// Ready is the status of its Ready condition; empty: True.
	Ready metav1.ConditionStatus
}

// AddNode adds a Node to a connected cluster, if it does not exist. [Providers] calls it when a machine or an instance
// of a pool joins.
func (w *Workloads) AddNode(cluster client.ObjectKey, n Node) {
	c, err := w.cluster(cluster)
	if err != nil || c.api.Lookup(schema.GroupKind{Kind: "Node"}, client.ObjectKey{Name: n.Name}) != nil {
		return // the cluster was disconnected or the Node exists
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	node.Spec.ProviderID, node.Status.NodeInfo.KubeletVersion = n.ProviderID, n.Version
	if n.Ready == "" {
		n.Ready = metav1.ConditionTrue
	}
	at := metav1.NewTime(w.world.Now())
	for kind, status := range map[corev1.NodeConditionType]metav1.ConditionStatus{
		corev1.NodeReady: n.Ready, corev1.NodeMemoryPressure: metav1.ConditionFalse, corev1.NodeDiskPressure: metav1.ConditionFalse,
		corev1.NodePIDPressure: metav1.ConditionFalse,
	} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionStatus(status), LastHeartbeatTime: at, LastTransitionTime: at,
		})
	}
	slices.SortFunc(node.Status.Conditions, func(a, b corev1.NodeCondition) int { return strings.Compare(string(a.Type), string(b.Type)) })
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(node)
	if err != nil {
		return // cannot happen, a Node can be encoded
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	_ = c.api.WriteAsSystem(u, "kubelet") // such writes are not validated
}

// RemoveNode removes the Node with a provider ID. [Providers] calls it when a machine or an instance of a pool is
// removed.
func (w *Workloads) RemoveNode(cluster client.ObjectKey, providerID string) {
	nodes, err := w.Nodes(context.Background(), cluster, providerID)
	if err != nil {
		return // a disconnected cluster has no Nodes
	}
	c, err := w.cluster(cluster)
	for i := range nodes {
		if err == nil {
			_ = c.api.Remove(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, client.ObjectKey{Name: nodes[i].Name}, "cloud-controller")
		}
	}
}

// clusterOf returns the Cluster from an object's label. [Providers] finds the workload cluster of an object by it.
func clusterOf(o metav1.Object) client.ObjectKey {
	return client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetLabels()[clusterv1.ClusterNameLabel]}
}
