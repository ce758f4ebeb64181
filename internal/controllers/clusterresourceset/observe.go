package clusterresourceset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/reconciler"
)

// snapshot is the input of all decisions about a ClusterResourceSet. observe fills it in each reconciliation.
type snapshot struct {
	Now time.Time
	Set *addonsv1.ClusterResourceSet
	// Clusters are the clusters that the set selects, sorted by name. Clusters that are being deleted are excluded,
	// unless a hook delays the deletion.
	Clusters []selectedCluster
	// Former are the bindings with an entry of the set whose cluster is being deleted, sorted by name.
	Former []*addonsv1.ClusterResourceSetBinding
	// Bound are all bindings with an entry of the set, sorted by name.
	Bound []*addonsv1.ClusterResourceSetBinding
	// Resources are the resources in the order of the spec.
	Resources []resourceSource
}

// selectedCluster is a cluster that the set selects. decide and act read it.
type selectedCluster struct {
	Cluster *clusterv1.Cluster
	// Binding is the binding of the cluster, or nil.
	Binding *addonsv1.ClusterResourceSetBinding
	// Connected is true if the workload cluster is reachable.
	Connected bool
}

// resourceSource is a ConfigMap or Secret of the set. decide and the conditions read it.
type resourceSource struct {
	Ref addonsv1.ResourceRef
	// Source is the object's metadata, or nil if it does not exist.
	Source *metav1.PartialObjectMetadata
	// WrongType is true for a Secret without the type for resource sets.
	WrongType bool
	// Hash is the hash of the content, or empty if it is unknown.
	Hash string
	// Content is the parsed content, or nil if it was not read.
	Content *content
}

// observe reads the snapshot of a set, without the contents of ConfigMaps and Secrets, which [decide] requests when
// they are needed. Package reconciler calls it at the beginning of each reconciliation.
func (c *controller) observe(ctx context.Context, set *addonsv1.ClusterResourceSet) (snapshot, error) {
	s := snapshot{Now: c.now(), Set: set}
	bindings, err := c.readBindings(ctx, &s)
	if err != nil {
		return s, err
	}
	if !set.DeletionTimestamp.IsZero() {
		return s, nil
	}
	if err := c.readClusters(ctx, &s, bindings); err != nil {
		return s, err
	}
	for _, ref := range set.Spec.Resources {
		r, err := c.readResource(ctx, set.Namespace, ref)
		if err != nil {
			return s, err
		}
		s.Resources = append(s.Resources, r)
	}
	return s, nil
}

// readBindings reads the bindings in the namespace and returns them by name.
func (c *controller) readBindings(ctx context.Context, s *snapshot) (map[string]*addonsv1.ClusterResourceSetBinding, error) {
	list := &addonsv1.ClusterResourceSetBindingList{}
	if err := c.client.List(ctx, list, client.InNamespace(s.Set.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ClusterResourceSetBindings: %w", err)
	}
	out := map[string]*addonsv1.ClusterResourceSetBinding{}
	for i := range list.Items {
		b := &list.Items[i]
		if value := b.Labels[clusterv1.WatchLabel]; c.scope.WatchFilter != "" && value != "" && value != c.scope.WatchFilter {
			continue // another manager reconciles its Cluster
		}
		out[b.Name] = b
		if entryOf(b, s.Set.Name) != nil {
			s.Bound = append(s.Bound, b)
		}
	}
	slices.SortFunc(s.Bound, func(a, b *addonsv1.ClusterResourceSetBinding) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

func (c *controller) readClusters(ctx context.Context, s *snapshot, bindings map[string]*addonsv1.ClusterResourceSetBinding) error {
	list := &clusterv1.ClusterList{}
	if err := c.client.List(ctx, list, client.InNamespace(s.Set.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Clusters: %w", err)
	}
	deleted := map[string]bool{}
	for i := range list.Items {
		cluster := &list.Items[i]
		if !cluster.DeletionTimestamp.IsZero() && !c.isHeld(cluster) {
			deleted[cluster.Name] = true
			continue
		}
		if selects(s.Set, cluster) {
			key := client.ObjectKeyFromObject(cluster)
			s.Clusters = append(s.Clusters, selectedCluster{
				Cluster: cluster, Binding: bindings[cluster.Name], Connected: c.workloads.Health(key).Connected,
			})
		}
	}
	slices.SortFunc(s.Clusters, func(a, b selectedCluster) int { return cmp.Compare(a.Cluster.Name, b.Cluster.Name) })
	for _, b := range s.Bound {
		if deleted[b.Name] {
			s.Former = append(s.Former, b)
		}
	}
	return nil
}

// isHeld reports whether a hook may still delay the deletion of the Cluster.
func (c *controller) isHeld(cluster *clusterv1.Cluster) bool {
	_, allowed := cluster.Annotations[runtimev1.OkToDeleteAnnotation]
	return c.deleteHook && !allowed && cluster.Spec.Topology.IsDefined()
}

// selects reports whether the set selects the cluster. An empty selector selects nothing.
func selects(set *addonsv1.ClusterResourceSet, cluster *clusterv1.Cluster) bool {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.ClusterSelector)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(cluster.Labels))
}

// readResource reads the metadata of a ConfigMap or Secret.
func (c *controller) readResource(ctx context.Context, namespace string, ref addonsv1.ResourceRef) (resourceSource, error) {
	r := resourceSource{Ref: ref}
	key := client.ObjectKey{Namespace: namespace, Name: ref.Name}
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(ref.Kind))
	err := c.sources.Get(ctx, key, meta)
	switch {
	case err == nil:
		r.Source, r.Hash = meta, c.hashes.get(meta)
		return r, nil
	case !apierrors.IsNotFound(err):
		return r, fmt.Errorf("reading %s %s: %w", ref.Kind, key, err)
	case !isSecret(ref):
		return r, nil
	}
	// Secrets of other types are not watched, so whether one exists has to be read.
	secret := &corev1.Secret{}
	err = c.live.Get(ctx, key, secret)
	if err == nil {
		r.WrongType = secret.Type != addonsv1.ClusterResourceSetSecretType
		return r, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return r, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return r, nil
}

// askContent requests the content of a ConfigMap or Secret. decide puts it into the plan.
type askContent struct{ Kind, Name string }

func (q askContent) String() string { return fmt.Sprintf("the content of %s %s", q.Kind, q.Name) }

// answer reads a content from the API server. Package reconciler calls it for each askContent that [decide] requests. A
// source that was deleted in the meantime counts as missing.
func (c *controller) answer(ctx context.Context, s snapshot, question reconciler.ReadRequest) (snapshot, error) {
	q, ok := question.(askContent)
	if !ok {
		return s, reconciler.UnknownRead("clusterresourceset", question)
	}
	s.Resources = slices.Clone(s.Resources)
	for i := range s.Resources {
		r := &s.Resources[i]
		if r.Ref != (addonsv1.ResourceRef{Kind: q.Kind, Name: q.Name}) {
			continue
		}
		source, data, err := c.readData(ctx, client.ObjectKey{Namespace: s.Set.Namespace, Name: q.Name}, r)
		if apierrors.IsNotFound(err) {
			r.Source = nil
			continue
		}
		if err != nil {
			return s, fmt.Errorf("reading %s %s: %w", q.Kind, q.Name, err)
		}
		content := read(data)
		r.Content, r.Hash = &content, content.Hash
		c.hashes.put(source, content.Hash)
	}
	return s, nil
}

func (c *controller) readData(ctx context.Context, key client.ObjectKey, r *resourceSource) (client.Object, map[string][]byte, error) {
	if isSecret(r.Ref) {
		secret := &corev1.Secret{}
		err := c.live.Get(ctx, key, secret)
		r.WrongType = err == nil && secret.Type != addonsv1.ClusterResourceSetSecretType
		return secret, secret.Data, err
	}
	config := &corev1.ConfigMap{}
	err := c.live.Get(ctx, key, config)
	data := map[string][]byte{}
	for name, text := range config.Data {
		data[name] = []byte(text)
	}
	return config, data, err
}

func isSecret(ref addonsv1.ResourceRef) bool {
	return ref.Kind == string(addonsv1.SecretClusterResourceSetResourceKind)
}

// entryOf returns the entry of the set in a binding, or nil.
func entryOf(b *addonsv1.ClusterResourceSetBinding, set string) *addonsv1.ResourceSetBinding {
	if b == nil {
		return nil
	}
	for i := range b.Spec.Bindings {
		if b.Spec.Bindings[i].ClusterResourceSetName == set {
			return &b.Spec.Bindings[i]
		}
	}
	return nil
}
