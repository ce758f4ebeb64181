package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/conversion"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
)

// ClusterForRequest returns the Cluster as it is sent in requests of lifecycle hooks: without status, managed fields
// and the annotations that repeat the whole object, which account for most of its size. The Cluster itself is not
// changed; the copy shares memory with it.
func ClusterForRequest(cluster *clusterv1.Cluster) clusterv1.Cluster {
	out := clusterv1.Cluster{TypeMeta: cluster.TypeMeta, ObjectMeta: cluster.ObjectMeta, Spec: cluster.Spec}
	out.ManagedFields = nil
	out.Annotations = maps.Clone(cluster.Annotations)
	delete(out.Annotations, corev1.LastAppliedConfigAnnotation)
	delete(out.Annotations, conversion.DataAnnotation)
	out.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	return out
}

// digest returns a hash of the input that a response about a Cluster may depend on, for [Invocation].CacheKey: the
// Cluster as it is sent in requests, and additional values, such as other fields of the request. It does not change
// when Slipway records progress in annotations, or when the status is updated. [LifecycleCaller] calls it. A new
// annotation for progress must be removed here: otherwise each write of it causes another call of the hooks.
func digest(cluster *clusterv1.Cluster, more ...string) string {
	slim := ClusterForRequest(cluster)
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
	if err != nil { // a Cluster that was read can always be encoded; an empty digest makes the whole request the input
		return ""
	}
	return DigestOf(data)
}

// DigestOf returns a hash of data, for [Invocation].CacheKey. Package inplace calls it.
func DigestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
