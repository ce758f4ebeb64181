package membership

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/kube"
)

// IndexByCluster lets a controller list the members of a Cluster without reading all other objects of their namespace, which
// may be those of a thousand Clusters. Each controller has an index of its own.
func IndexByCluster(indexer client.FieldIndexer, controller string, kinds ...client.Object) error {
	for _, kind := range kinds {
		if err := indexer.IndexField(context.Background(), kind, ClusterField(controller), ClusterNames); err != nil {
			return fmt.Errorf("index %T by Cluster: %w", kind, err)
		}
	}
	return nil
}

// InCluster selects the members of a Cluster by the index of a controller. They come from a cache and are not copied: they
// must not be changed.
func InCluster(controller string, cluster client.ObjectKey) []client.ListOption {
	return []client.ListOption{
		client.InNamespace(cluster.Namespace), client.MatchingFields{ClusterField(controller): cluster.Name}, client.UnsafeDisableDeepCopy,
	}
}

// EnqueueMembers enqueues every object of a kind that is a member of the Cluster of an event, for a controller that has
// indexed the kind by Cluster.
func EnqueueMembers(c client.Reader, controller string, newList func() client.ObjectList) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, cluster client.Object) []reconcile.Request {
		list := newList()
		if err := c.List(ctx, list, InCluster(controller, client.ObjectKeyFromObject(cluster))...); err != nil {
			return nil
		}
		return Requests(list)
	})
}

// ClusterField is the name of the index of a controller.
func ClusterField(controller string) string { return controller + ".cluster" }

// ClusterNames are the values of an object in the index: the Clusters of its spec and of its label. The first reconciliation
// writes the label; an object that was paused before has only the field, and has to be found when its Cluster is resumed.
func ClusterNames(o client.Object) []string {
	var out []string
	for _, name := range []string{clusterInSpec(o), o.GetLabels()[clusterv1.ClusterNameLabel]} {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// ClusterOf returns the name of the Cluster that an object is a member of, by its spec, its label or its owner; empty: none.
func ClusterOf(o client.Object) string {
	if name := clusterInSpec(o); name != "" {
		return name
	}
	if name := o.GetLabels()[clusterv1.ClusterNameLabel]; name != "" {
		return name
	}
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == "Cluster" && clusterv1.GroupVersion.Group == groupOf(ref.APIVersion) {
			return ref.Name
		}
	}
	return ""
}

// IsPausedByCluster reports whether the Cluster that an object is, or is a member of, sets spec.paused.
func IsPausedByCluster(ctx context.Context, c client.Reader, o client.Object) (bool, error) {
	cluster, ok := o.(*clusterv1.Cluster)
	if !ok {
		name := ClusterOf(o)
		if name == "" {
			return false, nil
		}
		var err error
		if cluster, err = kube.Cluster(ctx, c, client.ObjectKey{Namespace: o.GetNamespace(), Name: name}); err != nil || cluster == nil {
			return false, err
		}
	}
	return isTrue(cluster.Spec.Paused), nil
}

// clusterInSpec returns spec.clusterName, which the kinds of the core have from their creation.
func clusterInSpec(o client.Object) string {
	switch o := o.(type) {
	case *clusterv1.Machine:
		return o.Spec.ClusterName
	case *clusterv1.MachineSet:
		return o.Spec.ClusterName
	case *clusterv1.MachineDeployment:
		return o.Spec.ClusterName
	case *clusterv1.MachinePool:
		return o.Spec.ClusterName
	case *clusterv1.MachineHealthCheck:
		return o.Spec.ClusterName
	}
	return ""
}

// groupOf returns the group of an apiVersion.
func groupOf(apiVersion string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group
}

func isTrue(b *bool) bool { return b != nil && *b }
