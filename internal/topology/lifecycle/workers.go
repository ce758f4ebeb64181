package lifecycle

import (
	"strconv"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/version"
)

// Behind reports whether what runs is not yet what a spec asks for: it is older, or of another build. A suffix that a
// distribution adds does not matter.
func Behind(running, want string) bool {
	if version.Runs(running, want) {
		return false
	}
	r, errR := version.Parse(running)
	w, errW := version.Parse(want)
	if errR != nil || errW != nil {
		return running != want
	}
	return r.Compare(w) < 0 || len(w.Build) > 0 && r.Version.EQ(w.Version) && !same(running, want)
}

// Lowest is the oldest version of the workers that exist; empty: there are none. Of two builds of the same patch it is
// one that is not the target's. Workers whose version cannot be read, or is newer than that of the control plane, do not
// count: they get the control plane's.
func Lowest(workers []Worker, controlPlane, target string) string {
	lowest, found := version.Version{}, false
	for _, w := range workers {
		if !w.Exists || astray(w, controlPlane) {
			continue
		}
		v, err := version.Parse(w.Version)
		if err != nil {
			continue
		}
		order := v.Version.Compare(lowest.Version)
		if !found || order < 0 || order == 0 && same(lowest.String(), target) {
			lowest, found = v, true
		}
	}
	if !found {
		return ""
	}
	return lowest.String()
}

// astray reports whether a worker has a version that no upgrade gives it: none, one that cannot be read, or one newer
// than the control plane's.
func astray(w Worker, controlPlane string) bool {
	v, err := version.Parse(w.Version)
	if err != nil {
		return true
	}
	server, err := version.Parse(controlPlane)
	return err == nil && v.Version.GT(server.Version)
}

// concurrency is how many workers of one kind may be upgrading at once.
func concurrency(cluster *clusterv1.Cluster) int {
	n, err := strconv.Atoi(cluster.Annotations[clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation])
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// deferrals says by which annotation the upgrade of each worker is deferred; empty: it is not. A worker that holds the
// sequence defers those of its kind that follow it.
func deferrals(workers []Worker) []string {
	out, held := make([]string, len(workers)), map[string]bool{}
	for i, w := range workers {
		if _, has := w.Annotations[clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation]; has {
			held[w.Kind] = true
		}
		_, deferred := w.Annotations[clusterv1.ClusterTopologyDeferUpgradeAnnotation]
		switch {
		case held[w.Kind]:
			out[i] = clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation
		case deferred:
			out[i] = clusterv1.ClusterTopologyDeferUpgradeAnnotation
		}
	}
	return out
}

// workerState is what becomes of a worker.
type workerState int

const (
	upToDate workerState = iota
	// upgrading workers have a version that not all of their Machines run, or get it now.
	upgrading
	// queued workers get a version later.
	queued
	// deferred workers get it when a person removes an annotation.
	deferred
	// withheld workers are created later.
	withheld
)

// workers decides which version each worker has now.
func (d *decision) workers() {
	d.states = make([]workerState, len(d.Workers))
	d.verdict.Workers = make([]Part, len(d.Workers))
	slots := map[string]int{}
	for _, w := range d.Workers {
		if w.Exists && w.Upgrading {
			slots[w.Kind]++
		}
	}
	deferrals := deferrals(d.Workers)
	for i, w := range d.Workers {
		if !w.Exists {
			d.verdict.Workers[i], d.states[i] = d.created()
			continue
		}
		part := Part{Version: w.Version}
		state := d.stateOf(w, deferrals[i])
		if state == queued && d.mayHave(w) && (w.Upgrading || slots[w.Kind] < concurrency(d.Cluster)) {
			if !w.Upgrading {
				slots[w.Kind]++
			}
			part.Version, state = d.current, upgrading
		} else {
			// While their rollout is waited for, workers may change: that may be what ends it.
			part.Frozen = len(d.rolling) == 0 && (state == queued || state == upgrading && !same(w.Version, d.target))
		}
		d.verdict.Workers[i], d.states[i] = part, state
	}
}

// created is a worker that does not exist: it gets the version of the control plane when that has no upgrade before it.
func (d *decision) created() (Part, workerState) {
	part := Part{Version: d.current}
	scaling := d.ControlPlane != nil && d.ControlPlane.Scaling
	switch {
	case d.isProvisioning() && len(d.route.ControlPlane) == 0 && !d.unplanned:
	case d.unplanned, scaling, len(d.route.ControlPlane) > 0, !d.isControlPlaneStable(),
		d.pending[AfterControlPlaneUpgrade], d.pending[BeforeWorkersUpgrade]:
		part.Withheld = true
		return part, withheld
	}
	return part, upToDate
}

// stateOf is the state of a worker before it gets another version.
func (d *decision) stateOf(w Worker, deferral string) workerState {
	switch {
	case !same(w.Version, d.target) && deferral != "" && !w.Upgrading:
		return deferred
	case same(w.Version, d.current) && w.Upgrading:
		return upgrading
	case !same(w.Version, d.target):
		return queued
	case w.Upgrading:
		return upgrading
	}
	return upToDate
}

// mayHave reports whether a worker may get the version of the control plane now.
func (d *decision) mayHave(w Worker) bool {
	if !d.workersMay || same(w.Version, d.current) {
		return false
	}
	if astray(w, d.current) {
		_, err := version.Parse(w.Version)
		return err != nil || len(d.route.ControlPlane) == 0
	}
	return d.areWorkersDue()
}
