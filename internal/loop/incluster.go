package loop

import (
	"context"
	"fmt"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IndexByCluster lets a controller list the objects of kinds that belong to a Cluster without a look at all others in the
// namespace, which may be those of a thousand clusters. Each controller has an index of its own.
func (s Setup) IndexByCluster(controller string, kinds ...client.Object) error {
	for _, kind := range kinds {
		if err := s.Manager.GetFieldIndexer().IndexField(context.Background(), kind, ClusterField(controller), ClusterNames); err != nil {
			return fmt.Errorf("index %T by Cluster: %w", kind, err)
		}
	}
	return nil
}

// InCluster selects the objects that name a Cluster in their spec or their label, by the index of a controller. They come from a cache and
// are not copied: nobody may change them.
func InCluster(controller string, cluster client.ObjectKey) []client.ListOption {
	return []client.ListOption{
		client.InNamespace(cluster.Namespace), client.MatchingFields{ClusterField(controller): cluster.Name}, client.UnsafeDisableDeepCopy,
	}
}

// ClusterField is the name of the index of a controller.
func ClusterField(controller string) string { return controller + ".cluster" }

// ClusterNames is what the index has of an object: the Clusters of its spec and of its label, which it gets with its first
// reconciliation. An object that is paused before has only the former, and has to be found when its Cluster is not paused any more.
func ClusterNames(o client.Object) []string {
	var out []string
	for _, name := range []string{clusterInSpec(o), o.GetLabels()[clusterv1.ClusterNameLabel]} {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// clusterOf returns the name of the Cluster that the object belongs to, by its spec, its label or its owner.
func clusterOf(o client.Object) string {
	if name := clusterInSpec(o); name != "" {
		return name
	}
	if name := o.GetLabels()[clusterv1.ClusterNameLabel]; name != "" {
		return name
	}
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == "Cluster" && clusterv1.GroupVersion.Group == group(ref.APIVersion) {
			return ref.Name
		}
	}
	return ""
}

// clusterInSpec returns the name in spec.clusterName, for the kinds of the core, which have that field from the beginning.
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
