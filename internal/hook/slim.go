package hook

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// conversionData is the annotation in which an older version of the API keeps the fields it does not have.
const conversionData = "cluster.x-k8s.io/conversion-data"

// Slim returns the Cluster as requests carry it: without status, and without managed fields and the annotations that repeat
// the whole object, which are most of its size. The Cluster itself is not changed; the two share memory.
func Slim(cluster *clusterv1.Cluster) clusterv1.Cluster {
	out := clusterv1.Cluster{TypeMeta: cluster.TypeMeta, ObjectMeta: cluster.ObjectMeta, Spec: cluster.Spec}
	out.ManagedFields = nil
	out.Annotations = maps.Clone(cluster.Annotations)
	delete(out.Annotations, corev1.LastAppliedConfigAnnotation)
	delete(out.Annotations, conversionData)
	out.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	return out
}
