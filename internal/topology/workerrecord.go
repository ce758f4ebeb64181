package topology

import (
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
)

// IsAwaited reports whether a worker is in the annotation of the Cluster but has not been restored yet.
func (s Snapshot) IsAwaited(worker Key) bool {
	return !s.Exists(worker) && !s.Live.Deleting[worker] && slices.Contains(s.recorded(), recordOf(worker))
}

// Exists reports whether a worker exists and is not being deleted.
func (s Snapshot) Exists(worker Key) bool {
	workers := s.Live.Deployments
	if worker.Role == Pool {
		workers = s.Live.Pools
	}
	return workers[worker.Worker].Object != nil
}

func recordOf(worker Key) string { return string(worker.Role) + "/" + worker.Worker }

// recorded returns the workers in the annotation of the Cluster.
func (s Snapshot) recorded() []string {
	return strings.Split(s.Cluster.Annotations[lifecycle.WorkersAnnotation], ",")
}

// WorkerRecord returns the desired value of the annotation: the workers in the topology that exist or are awaited.
func (s Snapshot) WorkerRecord() string {
	var out []string
	add := func(worker Key) {
		if s.Exists(worker) || s.IsAwaited(worker) {
			out = append(out, recordOf(worker))
		}
	}
	for _, t := range s.Cluster.Spec.Topology.Workers.MachineDeployments {
		add(Key{Role: Deployment, Worker: t.Name})
	}
	for _, t := range s.Cluster.Spec.Topology.Workers.MachinePools {
		add(Key{Role: Pool, Worker: t.Name})
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}
