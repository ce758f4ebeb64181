package topology

import (
	"maps"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
)

// isAwaited reports whether a worker is still to be restored.
func (s Snapshot) isAwaited(worker topology.Key) bool {
	return !s.exists(worker) && !s.Deleting[worker] && slices.Contains(s.recorded(), recordOf(worker))
}

func (s Snapshot) exists(worker topology.Key) bool {
	workers := s.Live.Deployments
	if worker.Role == topology.Pool {
		workers = s.Live.Pools
	}
	return workers[worker.Worker].Object != nil
}

func recordOf(worker topology.Key) string { return string(worker.Role) + "/" + worker.Worker }

// recorded are the workers that the Cluster lists.
func (s Snapshot) recorded() []string {
	return strings.Split(s.Cluster.Annotations[lifecycle.WorkersAnnotation], ",")
}

// record is what the Cluster should list: the workers that exist, and those of the topology that are awaited.
func (s Snapshot) record() string {
	var out []string
	add := func(worker topology.Key) {
		if s.exists(worker) || s.isAwaited(worker) {
			out = append(out, recordOf(worker))
		}
	}
	for _, t := range s.Cluster.Spec.Topology.Workers.MachineDeployments {
		add(topology.Key{Role: topology.Deployment, Worker: t.Name})
	}
	for _, t := range s.Cluster.Spec.Topology.Workers.MachinePools {
		add(topology.Key{Role: topology.Pool, Worker: t.Name})
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// await waits for a worker to be restored.
func await(s Snapshot, worker topology.Key, p *loop.Plan) {
	p.WaitFor(clusterv1.ClusterTopologyReconciledFailedReason, "%s existed and does not any more: restore it, or remove it from the annotation %s of the Cluster "+
		"to have it created again", worker, lifecycle.WorkersAnnotation).For(string(worker.Role), worker.Worker).ForPerson()
}

// list writes the list of workers.
func list(cluster client.Object, workers string) {
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
