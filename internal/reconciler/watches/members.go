package watches

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// IndexByCluster adds an index with which a controller lists the members of a Cluster, the objects that belong to it,
// without reading all objects in the namespace, which may contain a thousand Clusters. The Add function of each
// controller that lists members calls it for an index of its own.
func IndexByCluster(indexer client.FieldIndexer, controller string, kinds ...client.Object) error {
	for _, kind := range kinds {
		if err := indexer.IndexField(context.Background(), kind, ClusterField(controller), clusterNames); err != nil {
			return fmt.Errorf("index %T by Cluster: %w", kind, err)
		}
	}
	return nil
}

// InCluster selects the members of a Cluster through the index of a controller. The objects come from the cache
// without a deep copy and must not be changed.
func InCluster(controller string, cluster client.ObjectKey) []client.ListOption {
	return []client.ListOption{
		client.InNamespace(cluster.Namespace), client.MatchingFields{ClusterField(controller): cluster.Name}, client.UnsafeDisableDeepCopy,
	}
}

// EnqueueMembers enqueues all objects of a kind that are members of the Cluster in an event. The controller must
// have indexed the kind by Cluster. The Add functions of controllers watch Clusters with it.
func EnqueueMembers(c client.Reader, controller string, newList func() client.ObjectList) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, cluster client.Object) []reconcile.Request {
		list := newList()
		if err := c.List(ctx, list, InCluster(controller, client.ObjectKeyFromObject(cluster))...); err != nil {
			return nil
		}
		return Requests(list)
	})
}

// ClusterField returns the name of a controller's index.
func ClusterField(controller string) string { return controller + ".cluster" }

// clusterNames returns the index values of an object: the Clusters in its spec and in its label. The first
// reconciliation writes the label. An object that was paused before that has only the field, and must be found when
// its Cluster is resumed.
func clusterNames(o client.Object) []string {
	var out []string
	for _, name := range []string{clusterInSpec(o), o.GetLabels()[clusterv1.ClusterNameLabel]} {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// ClusterOf returns the name of the object's Cluster from its spec, its label or its owner, or an empty string.
// [Scope.Includes], package reporting for a paused object, and the watches of several controllers find the Cluster with
// it.
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

// clusterInSpec returns spec.clusterName, which objects of the core's kinds have from their creation.
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

// groupOf returns the API group of an apiVersion.
func groupOf(apiVersion string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group
}
