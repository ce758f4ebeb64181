package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
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

// Digest stands for what an answer about a Cluster may depend on, as [Exchange].Input: what a request carries of it, and more,
// such as the other fields of the request. It stays the same when this program records how far it is, or a status is written.
func Digest(cluster *clusterv1.Cluster, more ...string) string {
	slim := Slim(cluster)
	slim.ResourceVersion, slim.Generation = "", 0
	delete(slim.Annotations, runtimev1.PendingHooksAnnotation)
	delete(slim.Annotations, clusterv1.ClusterTopologyUpgradeStepAnnotation)
	delete(slim.Annotations, lifecycle.WorkersAnnotation)
	if len(slim.Annotations) == 0 {
		slim.Annotations = nil
	}
	data, err := json.Marshal(struct {
		Cluster clusterv1.Cluster
		More    []string
	}{slim, more})
	if err != nil { // no Cluster that was read cannot be written; without a digest the whole request counts
		return ""
	}
	return DigestOf(data)
}

// DigestOf stands for bytes in [Exchange].Input.
func DigestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
