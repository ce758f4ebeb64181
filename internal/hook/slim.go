package hook

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Slim returns the Cluster as requests carry it: without status, and without managed fields, which are most of its size
// (RT-27). The Cluster itself is not changed; the two share memory.
func Slim(cluster *clusterv1.Cluster) clusterv1.Cluster {
	out := clusterv1.Cluster{TypeMeta: cluster.TypeMeta, ObjectMeta: cluster.ObjectMeta, Spec: cluster.Spec}
	out.ManagedFields = nil
	out.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	return out
}
