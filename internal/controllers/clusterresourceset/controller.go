package clusterresourceset

import (
	"context"
	"fmt"
	"slices"
	"time"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/membership"
	"github.com/slipwayhq/slipway/internal/remote"
)

// Name of the controller.
const Name = "clusterresourceset"

// Settings of the controller.
type Settings struct {
	// Namespaces that the manager is limited to; empty: all.
	Namespaces []string
	// DeleteHook: the deletion of Clusters with a topology waits for the annotation runtime.cluster.x-k8s.io/ok-to-delete.
	// Until it is set they live on, and get what the set has.
	DeleteHook bool
}

// Workloads is what the controller needs of the workload clusters.
type Workloads interface {
	Client(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
	Health(cluster client.ObjectKey) remote.Health
}

// Controller reconciles ClusterResourceSets.
type Controller struct {
	client client.Client
	// sources reads the metadata of ConfigMaps and Secrets, live their content.
	sources, live client.Reader
	workloads     Workloads
	writer        *kube.Writer
	scope         membership.Scope
	deleteHook    bool
	now           func() time.Time
	hashes        hashes
}

// Add adds the controller to the manager.
func Add(s loop.Setup, clusters remote.Workloads, settings Settings) error {
	sources, err := newSources(s, settings)
	if err != nil {
		return fmt.Errorf("preparing the cache of resources: %w", err)
	}
	if err := s.Manager.Add(sources); err != nil {
		return err
	}
	c := &Controller{
		client: s.Manager.GetClient(), sources: sources, live: s.Manager.GetAPIReader(), workloads: clusters,
		scope: s.Scope(), deleteHook: settings.DeleteHook, now: s.Clock(),
	}
	r := loop.NewReconciler(s, c.definition())
	c.writer = r.Writer
	ofSource := func(kind addonsv1.ClusterResourceSetResourceKind) source.Source {
		return source.Kind[client.Object](sources, metadataOf(kind), handler.EnqueueRequestsFromMapFunc(c.ofSource(string(kind))))
	}
	return s.Builder(Name, &addonsv1.ClusterResourceSet{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster),
			builder.WithPredicates(predicate.Or(membership.ClusterChanged(), predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&addonsv1.ClusterResourceSetBinding{}, handler.EnqueueRequestsFromMapFunc(c.ofBinding)).
		WatchesRawSource(ofSource(addonsv1.ConfigMapClusterResourceSetResourceKind)).
		WatchesRawSource(ofSource(addonsv1.SecretClusterResourceSetResourceKind)).
		WatchesRawSource(clusters.Changed(Name, c.ofConnection)).
		Complete(r)
}

func (c *Controller) definition() loop.Controller[*addonsv1.ClusterResourceSet, Snapshot] {
	return loop.Controller[*addonsv1.ClusterResourceSet, Snapshot]{
		Name: Name, Finalizer: addonsv1.ClusterResourceSetFinalizer,
		New:     func() *addonsv1.ClusterResourceSet { return &addonsv1.ClusterResourceSet{} },
		Observe: c.observe, Decide: Decide, Answer: c.answer, Act: c.act, Report: Report, Unread: unread,
	}
}

// ofCluster names the sets that select a cluster, and those that did and are bound to it.
func (c *Controller) ofCluster(ctx context.Context, o client.Object) []reconcile.Request {
	cluster := o.(*clusterv1.Cluster)
	binding := &addonsv1.ClusterResourceSetBinding{}
	if c.client.Get(ctx, client.ObjectKeyFromObject(cluster), binding) != nil {
		binding = nil
	}
	return c.sets(ctx, cluster.Namespace, func(set *addonsv1.ClusterResourceSet) bool {
		return selects(set, cluster) || entryOf(binding, set.Name) != nil
	})
}

// ofConnection names the sets that select a cluster whose connection came, went or began to fail.
func (c *Controller) ofConnection(ctx context.Context, key client.ObjectKey) []reconcile.Request {
	cluster := &clusterv1.Cluster{}
	if c.client.Get(ctx, key, cluster) != nil {
		return nil
	}
	return c.ofCluster(ctx, cluster)
}

// ofBinding names the sets with an entry in a binding, and those that select its cluster: their entry may be lost.
func (c *Controller) ofBinding(ctx context.Context, o client.Object) []reconcile.Request {
	binding := o.(*addonsv1.ClusterResourceSetBinding)
	cluster := &clusterv1.Cluster{}
	if c.client.Get(ctx, client.ObjectKeyFromObject(binding), cluster) != nil {
		cluster = &clusterv1.Cluster{}
	}
	return c.sets(ctx, binding.Namespace, func(set *addonsv1.ClusterResourceSet) bool {
		return entryOf(binding, set.Name) != nil || selects(set, cluster)
	})
}

// ofSource names the sets that refer to a ConfigMap or Secret.
func (c *Controller) ofSource(kind string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return c.sets(ctx, o.GetNamespace(), func(set *addonsv1.ClusterResourceSet) bool {
			return slices.Contains(set.Spec.Resources, addonsv1.ResourceRef{Kind: kind, Name: o.GetName()})
		})
	}
}

func (c *Controller) sets(ctx context.Context, namespace string, keep func(*addonsv1.ClusterResourceSet) bool) []reconcile.Request {
	list := &addonsv1.ClusterResourceSetList{}
	if c.client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy) != nil {
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
