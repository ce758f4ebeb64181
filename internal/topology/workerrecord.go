package topology

import (
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
)

// IsAwaited reports whether a worker is in the annotation of the Cluster but has not been restored yet.
func (s Snapshot) IsAwaited(worker Key) bool {
	return !s.Exists(worker) && !s.Live.Deleting[worker] &&
		slices.Contains(strings.Split(s.Cluster.Annotations[lifecycle.WorkersAnnotation], ","), recordOf(worker))
}

// Exists reports whether a worker exists and is not being deleted.
func (s Snapshot) Exists(worker Key) bool {
	return s.Live.worker(worker).Object != nil
}

func recordOf(worker Key) string { return string(worker.Role) + "/" + worker.Worker }

// WorkerRecord returns the desired value of the annotation: the workers in the topology that exist or are awaited.
func (s Snapshot) WorkerRecord() string {
	var out []string
	for _, w := range Workers(s.Cluster.Spec.Topology) {
		if s.Exists(w.Key) || s.IsAwaited(w.Key) {
			out = append(out, recordOf(w.Key))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}
