package watches

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
)

// Scope is the set of objects that the manager reconciles; see the package comment. The driver checks it for each
// object, and controllers without the driver check it themselves. The zero value includes every object.
type Scope struct {
	// WatchFilter is the required value of the label cluster.x-k8s.io/watch-filter. If it is empty, every object is
	// included.
	WatchFilter string
	// Cached reads from the manager's cache, Live from the API server. Both are required with a filter.
	Cached, Live client.Reader
}

// HasLabel reports whether the object has the label or no filter is set.
func (s Scope) HasLabel(o metav1.Object) bool {
	return s.WatchFilter == "" || o.GetLabels()[clusterv1.WatchLabel] == s.WatchFilter
}

// Includes reports whether an object is in the scope: the object and its Cluster both have the label. An object
// whose Cluster does not exist is included, because it may have to be deleted. The manager's cache does not contain
// Clusters outside the scope, so a Cluster that is not in the cache is read from the API server. The driver checks it
// at the start of each reconciliation.
func (s Scope) Includes(ctx context.Context, o client.Object) (bool, error) {
	if s.WatchFilter == "" {
		return true, nil
	}
	if !s.HasLabel(o) {
		return false, nil
	}
	name := ClusterOf(o)
	if _, isCluster := o.(*clusterv1.Cluster); isCluster || name == "" {
		return true, nil
	}
	key := client.ObjectKey{Namespace: o.GetNamespace(), Name: name}
	if cluster, err := kube.GetCluster(ctx, s.Cached, key); err != nil || cluster != nil {
		return err == nil && s.HasLabel(cluster), err
	}
	cluster := &metav1.PartialObjectMetadata{}
	cluster.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind))
	err := s.Live.Get(ctx, key, cluster)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Cluster %s: %w", key, err)
	}
	return s.HasLabel(cluster), nil
}

// Hidden returns the sorted names of the Cluster's members of one kind that lack the label and match keep. A
// controller that creates or deletes objects because other objects are not in its cache calls it first: a missing
// label must neither multiply Machines nor leave their infrastructure behind. Without a filter no object is hidden
// and nothing is read.
func (s Scope) Hidden(ctx context.Context, kind schema.GroupVersionKind, cluster client.ObjectKey, keep func(client.Object) bool) ([]string, error) {
	if s.WatchFilter == "" {
		return nil, nil
	}
	of, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.Equals, []string{cluster.Name})
	if err != nil {
		return nil, nil // no object can have a label with this value
	}
	without, err := labels.NewRequirement(clusterv1.WatchLabel, selection.NotEquals, []string{s.WatchFilter})
	if err != nil {
		return nil, fmt.Errorf("selecting by the value of --watch-filter: %w", err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	selector := client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*of, *without)}
	if err := s.Live.List(ctx, list, client.InNamespace(cluster.Namespace), selector); err != nil {
		return nil, fmt.Errorf("listing each %s without the label %s: %w", kind.Kind, clusterv1.WatchLabel, err)
	}
	var out []string
	for i := range list.Items {
		if keep(&list.Items[i]) {
			out = append(out, kind.Kind+" "+list.Items[i].Name)
		}
	}
	slices.Sort(out)
	return out, nil
}
