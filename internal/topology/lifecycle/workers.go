package lifecycle

import (
	"strconv"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/version"
)

// behind reports whether the running version is older than the version in a spec, or another build of it. A suffix that
// a distribution adds is ignored. [WorkerOf] and [Next] determine with it whether a worker or the control plane is
// upgrading.
func behind(running, want string) bool {
	if version.Runs(running, want) {
		return false
	}
	r, errR := version.Parse(running)
	w, errW := version.Parse(want)
	if errR != nil || errW != nil {
		return running != want
	}
	return r.Compare(w) < 0 || len(w.Build) > 0 && r.Version.EQ(w.Version) && !isSameVersion(running, want)
}

// Lowest returns the oldest version of the existing workers, or an empty string if there are none. Upgrade plans start
// from it, here and in `slipway upgrade cluster`. Between two builds of the same patch version it prefers one that is
// not the target's. Workers whose version is invalid, or newer than the control plane's version, are ignored, because
// they get the control plane's version.
func Lowest(workers []Worker, controlPlane, target string) string {
	lowest, found := version.Version{}, false
	for _, w := range workers {
		if !w.Exists || isOutsideUpgradePath(w, controlPlane) {
			continue
		}
		v, err := version.Parse(w.Version)
		if err != nil {
			continue
		}
		order := v.Version.Compare(lowest.Version)
		if !found || order < 0 || order == 0 && isSameVersion(lowest.String(), target) {
			lowest, found = v, true
		}
	}
	if !found {
		return ""
	}
	return lowest.String()
}

// isOutsideUpgradePath reports whether a worker has a version that is not part of any upgrade: none, an invalid one, or
// one newer than the control plane's version.
func isOutsideUpgradePath(w Worker, controlPlane string) bool {
	v, err := version.Parse(w.Version)
	if err != nil {
		return true
	}
	server, err := version.Parse(controlPlane)
	return err == nil && v.Version.GT(server.Version)
}

// concurrency returns how many workers of one kind may upgrade concurrently, according to Cluster API's annotation.
func concurrency(cluster *clusterv1.Cluster) int {
	n, err := strconv.Atoi(cluster.Annotations[clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation])
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// deferrals returns, for each worker, the annotation that defers its upgrade, or an empty string. A worker that holds
// the sequence also defers the following workers of its kind.
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

// workerState is the upgrade state of a worker. [Next] computes one for each worker, and the condition
// TopologyReconciled lists the workers by it.
type workerState int

const (
	upToDate workerState = iota
	// upgrading workers have a version that not all of their Machines run, or get it now.
	upgrading
	// queued workers get a version later.
	queued
	// deferred workers get a version when a user removes an annotation.
	deferred
	// withheld workers are created later.
	withheld
)

// workers decides which version each worker may have now. [Next] calls it after the gates of the upgrade are evaluated.
func (d *decision) workers() {
	d.states = make([]workerState, len(d.Workers))
	d.result.Workers = make([]Part, len(d.Workers))
	slots := map[string]int{}
	for _, w := range d.Workers {
		if w.Exists && w.Upgrading {
			slots[w.Kind]++
		}
	}
	deferrals := deferrals(d.Workers)
	for i, w := range d.Workers {
		if !w.Exists {
			d.result.Workers[i], d.states[i] = d.created()
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
			// While an upgrade waits for rollouts, workers may change, because a change may be necessary to complete
			// the rollout.
			part.Frozen = len(d.rolling) == 0 && (state == queued || state == upgrading && !isSameVersion(w.Version, d.target))
		}
		d.result.Workers[i], d.states[i] = part, state
	}
}

// created returns the state of a worker that does not exist: it is created with the version of the control plane once
// the control plane has no remaining upgrade.
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

// stateOf returns the state of a worker before it gets another version.
func (d *decision) stateOf(w Worker, deferral string) workerState {
	switch {
	case !isSameVersion(w.Version, d.target) && deferral != "" && !w.Upgrading:
		return deferred
	case isSameVersion(w.Version, d.current) && w.Upgrading:
		return upgrading
	case !isSameVersion(w.Version, d.target):
		return queued
	case w.Upgrading:
		return upgrading
	}
	return upToDate
}

// mayHave reports whether a worker may get the version of the control plane now.
func (d *decision) mayHave(w Worker) bool {
	if !d.workersMay || isSameVersion(w.Version, d.current) {
		return false
	}
	if isOutsideUpgradePath(w, d.current) {
		_, err := version.Parse(w.Version)
		return err != nil || len(d.route.ControlPlane) == 0
	}
	return d.areWorkersDue()
}
