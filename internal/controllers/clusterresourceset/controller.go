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
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/workload"
)

// Name is the name of the controller. Its field manager is "slipway-clusterresourceset", in workload clusters as well,
// where it owns fields of the applied objects.
const Name = "clusterresourceset"

// Settings are the settings of the controller. Package manager fills them.
type Settings struct {
	// Namespaces limits the manager to these namespaces. If it is empty, there is no limit.
	Namespaces []string
	// DeleteHook is set if the deletion of Clusters with a topology waits for the annotation
	// runtime.cluster.x-k8s.io/ok-to-delete. Until the annotation is set, such Clusters keep running and the set is
	// still applied to them.
	DeleteHook bool
}

// workloads provides clients for workload clusters and their health.
type workloads interface {
	Client(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
	Health(cluster client.ObjectKey) workload.Health
}

// controller reconciles ClusterResourceSets.
type controller struct {
	client client.Client
	// sources reads the metadata of ConfigMaps and Secrets, live their content.
	sources, live client.Reader
	workloads     workloads
	writer        *kube.Writer
	scope         watches.Scope
	deleteHook    bool
	now           func() time.Time
	hashes        hashes
}

// Add adds the ClusterResourceSet controller with its watches to the manager, and a cache for the ConfigMaps and
// Secrets of the sets. Package manager calls it when the manager starts.
func Add(s reconciler.Setup, clusters workload.Workloads, settings Settings) error {
	sources, err := newSources(s, settings)
	if err != nil {
		return fmt.Errorf("preparing the cache of resources: %w", err)
	}
	if err := s.Manager.Add(sources); err != nil {
		return err
	}
	c := &controller{
		client: s.Manager.GetClient(), sources: sources, live: s.Manager.GetAPIReader(), workloads: clusters,
		scope: s.Scope(), deleteHook: settings.DeleteHook, now: s.Clock(),
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer = r.Writer
	ofSource := func(kind addonsv1.ClusterResourceSetResourceKind) source.Source {
		return source.Kind[client.Object](sources, metadataOf(kind), handler.EnqueueRequestsFromMapFunc(c.ofSource(string(kind))))
	}
	return s.Builder(Name, &addonsv1.ClusterResourceSet{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster),
			builder.WithPredicates(predicate.Or(watches.ClusterChanged(), predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&addonsv1.ClusterResourceSetBinding{}, handler.EnqueueRequestsFromMapFunc(c.ofBinding)).
		WatchesRawSource(ofSource(addonsv1.ConfigMapClusterResourceSetResourceKind)).
		WatchesRawSource(ofSource(addonsv1.SecretClusterResourceSetResourceKind)).
		WatchesRawSource(clusters.Changed(Name, c.ofConnection)).
		Complete(r)
}

func (c *controller) definition() reconciler.Controller[*addonsv1.ClusterResourceSet, snapshot] {
	return reconciler.Controller[*addonsv1.ClusterResourceSet, snapshot]{
		Name: Name, Finalizer: addonsv1.ClusterResourceSetFinalizer,
		New:     func() *addonsv1.ClusterResourceSet { return &addonsv1.ClusterResourceSet{} },
		Observe: c.observe, Decide: decide, Read: c.answer, Act: c.act, Report: report, ReportFailure: unread,
	}
}

// ofCluster enqueues the sets that select a cluster or are bound to it.
func (c *controller) ofCluster(ctx context.Context, o client.Object) []reconcile.Request {
	cluster := o.(*clusterv1.Cluster)
	binding := &addonsv1.ClusterResourceSetBinding{}
	if c.client.Get(ctx, client.ObjectKeyFromObject(cluster), binding) != nil {
		binding = nil
	}
	return c.sets(ctx, cluster.Namespace, func(set *addonsv1.ClusterResourceSet) bool {
		return selects(set, cluster) || entryOf(binding, set.Name) != nil
	})
}

// ofConnection enqueues the sets that select a cluster when its connection is established, is lost, or starts to
// fail.
func (c *controller) ofConnection(ctx context.Context, key client.ObjectKey) []reconcile.Request {
	cluster := &clusterv1.Cluster{}
	if c.client.Get(ctx, key, cluster) != nil {
		return nil
	}
	return c.ofCluster(ctx, cluster)
}

// ofBinding enqueues the sets with an entry in a binding, and the sets that select its cluster, because their entry
// may have been removed.
func (c *controller) ofBinding(ctx context.Context, o client.Object) []reconcile.Request {
	binding := o.(*addonsv1.ClusterResourceSetBinding)
	cluster := &clusterv1.Cluster{}
	if c.client.Get(ctx, client.ObjectKeyFromObject(binding), cluster) != nil {
		cluster = &clusterv1.Cluster{}
	}
	return c.sets(ctx, binding.Namespace, func(set *addonsv1.ClusterResourceSet) bool {
		return entryOf(binding, set.Name) != nil || selects(set, cluster)
	})
}

// ofSource enqueues the sets that reference a ConfigMap or Secret.
func (c *controller) ofSource(kind string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return c.sets(ctx, o.GetNamespace(), func(set *addonsv1.ClusterResourceSet) bool {
			return slices.Contains(set.Spec.Resources, addonsv1.ResourceRef{Kind: kind, Name: o.GetName()})
		})
	}
}

func (c *controller) sets(ctx context.Context, namespace string, keep func(*addonsv1.ClusterResourceSet) bool) []reconcile.Request {
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
