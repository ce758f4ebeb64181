package membership

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

// Scope is the set of objects that the manager reconciles; see the package's documentation. The zero value has no limit.
type Scope struct {
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter that objects must have; empty: every object is
	// included.
	WatchFilter string
	// Cached reads the manager's cache, Live past it. Both are needed where there is a filter.
	Cached, Live client.Reader
}

// HasLabel reports whether an object has the label, or needs none.
func (s Scope) HasLabel(o metav1.Object) bool {
	return s.WatchFilter == "" || o.GetLabels()[clusterv1.WatchLabel] == s.WatchFilter
}

// Includes reports whether an object is in the scope: it has the label, and so has its Cluster. An object whose Cluster does
// not exist is included: it may have to be deleted. The manager's cache does not have the Clusters of others, so that the API
// server is asked which of the two is the case.
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
	if cluster, err := kube.Cluster(ctx, s.Cached, key); err != nil || cluster != nil {
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

// Hidden names the members of a Cluster that are of a kind, lack the label, and match keep; sorted. A controller that creates
// or deletes because of what is not in its cache lists them first: a label that is missing must neither multiply Machines nor
// leave their infrastructure behind. Without a filter nothing is hidden, and nothing is read.
func (s Scope) Hidden(ctx context.Context, kind schema.GroupVersionKind, cluster client.ObjectKey, keep func(client.Object) bool) ([]string, error) {
	if s.WatchFilter == "" {
		return nil, nil
	}
	of, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.Equals, []string{cluster.Name})
	if err != nil {
		return nil, nil // no object has a label of that value
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
