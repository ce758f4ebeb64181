package topology

import (
	"maps"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
)

// await adds a wait for a worker to be restored.
func await(s snapshot, worker topology.Key, p *reconciler.Plan) {
	p.WaitFor(clusterv1.ClusterTopologyReconciledFailedReason, "%s existed and does not any more: restore it, or remove it from the annotation %s of the Cluster "+
		"to have it created again", worker, lifecycle.WorkersAnnotation).For(string(worker.Role), worker.Worker).UntilUserActs()
}

// setWorkersAnnotation sets the annotation with the list of workers.
func setWorkersAnnotation(cluster client.Object, workers string) {
	annotations := maps.Clone(cluster.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[lifecycle.WorkersAnnotation] = workers
	if workers == "" {
		delete(annotations, lifecycle.WorkersAnnotation)
	}
	cluster.SetAnnotations(annotations)
}
