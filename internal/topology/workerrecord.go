package topology

import (
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
)

// IsAwaited reports whether a worker is listed in the annotation [lifecycle.WorkersAnnotation] of the Cluster but does
// not exist and is not being deleted: it is in a backup that is still being restored. The topology controller waits for
// it instead of creating another one, which would replace its Machines.
func (s Snapshot) IsAwaited(worker Key) bool {
	return !s.Exists(worker) && !s.Live.Deleting[worker] &&
		slices.Contains(strings.Split(s.Cluster.Annotations[lifecycle.WorkersAnnotation], ","), recordOf(worker))
}

// Exists reports whether a worker exists and is not being deleted. The topology controller calls it, too.
func (s Snapshot) Exists(worker Key) bool {
	return s.Live.worker(worker).Object != nil
}

// recordOf returns the entry of a worker in the annotation. Backups contain it, so its form must not change.
func recordOf(worker Key) string { return string(worker.Role) + "/" + worker.Worker }

// WorkerRecord returns the desired value of the annotation: the workers in the topology that exist or are awaited. The
// topology controller writes it to the Cluster.
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
