package workload

import (
	"crypto/sha256"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/pause"
)

// connectionState is the state of one cluster's connection between reconciliations. [Clusters.Reconcile] passes it to
// [decide], and stores the state that results from the step.
type connectionState struct {
	connected bool
	// since is the time of the last change of connected.
	since time.Time
	// lastSuccess is the time of the last successful probe.
	lastSuccess time.Time
	// failures is the number of consecutive failed probes and attempts.
	failures int
	// problem is a message for users that describes why the last probe or attempt failed.
	problem string
	// downSince is the time of the first failure in the current outage.
	downSince time.Time
	// due is the time of the next probe or attempt.
	due time.Time
	// tried is the input of the last connection attempt.
	tried fingerprint
	// excesses is the number of connections whose responses used too much memory; the last was closed at excessAt.
	excesses int
	excessAt time.Time
}

// fingerprint is the input of a connection attempt. When it changes, a new attempt is made immediately.
type fingerprint struct {
	kubeconfig  [sha256.Size]byte
	endpoint    clusterv1.APIEndpoint
	initialized bool
}

// fingerprintOf returns the fingerprint of a Cluster, without the kubeconfig. The predicate of the watch of Clusters
// compares it, too.
func fingerprintOf(c *clusterv1.Cluster) fingerprint {
	return fingerprint{endpoint: c.Spec.ControlPlaneEndpoint, initialized: ptr.Deref(c.Status.Initialization.ControlPlaneInitialized, false)}
}

// observation is the state observed in one reconciliation. [Clusters.Reconcile] creates it for [decide].
type observation struct {
	now         time.Time
	provisioned bool
	secretRead  bool
	secretFound bool
	stalled     bool // a cache of the connection did not sync in time
	// excess, if set, is the reason why a response for a cache was rejected.
	excess error
	// suspended is the time until which the connection is suspended.
	suspended time.Time
	print     fingerprint
}

// step is the next action for a cluster.
type step int

const (
	stepWait step = iota
	stepConnect
	stepProbe
	stepDisconnect
	stepRefuse
	stepSuspend
)

// decide decides the next action for a cluster. [Clusters.Reconcile] calls it once. It is pure. A connected cluster
// whose Secret is deleted remains connected, because its credentials are still valid; a new Secret or a rejected probe
// ends the connection.
func decide(s connectionState, f observation) step {
	if f.now.Before(f.suspended) {
		return stepSuspend
	}
	if s.connected {
		switch {
		case f.excess != nil:
			return stepRefuse
		case f.stalled:
			return stepDisconnect
		case f.secretRead && f.secretFound && f.print.kubeconfig != s.tried.kubeconfig:
			return stepConnect
		case !f.now.Before(s.due):
			return stepProbe
		}
		return stepWait
	}
	if !f.provisioned || !f.secretFound {
		return stepWait
	}
	if f.print != s.tried || !f.now.Before(s.due) {
		return stepConnect
	}
	return stepWait
}

// recheck returns the time until the next reconciliation; zero if only an event triggers it. A missing Secret is read
// periodically, because a Secret without the cluster-name label triggers no event. [Clusters.Reconcile] requeues after
// it.
func recheck(s connectionState, f observation, t Timing) time.Duration {
	switch {
	case !s.connected && !f.provisioned:
		return 0
	case !s.connected && f.secretRead && !f.secretFound:
		return t.RetryMax
	}
	return max(s.due.Sub(f.now), time.Millisecond)
}

// suspend returns the state of a cluster whose connection is suspended until a time.
func (s connectionState) suspend(now, until time.Time, problem string) connectionState {
	if s.connected {
		s.connected, s.since = false, now
	}
	s.failures, s.problem, s.due = max(s.failures, 1), problem, until
	return s
}

// exceeded returns the state after responses that used too much memory. The pause starts at the minimum again if the
// last time was long ago.
func (s connectionState) exceeded(now time.Time, problem string, t Timing) connectionState {
	if now.Sub(s.excessAt) > 2*t.PauseMax {
		s.excesses = 0
	}
	s.excesses, s.excessAt = s.excesses+1, now
	return s.suspend(now, now.Add(pause.Backoff(s.excesses, t.PauseMin, t.PauseMax)), problem)
}

// succeeded returns the state after a successful probe or attempt. The methods suspend, exceeded, succeeded and failed
// return what [Clusters.Reconcile] stores.
func (s connectionState) succeeded(now time.Time, t Timing) connectionState {
	if !s.connected {
		s.connected, s.since = true, now
	}
	s.lastSuccess, s.failures, s.problem = now, 0, ""
	s.downSince, s.due = time.Time{}, alignedTime(now, t.ProbeInterval)
	return s
}

// alignedTime returns the time of the next probe: at most one interval from now, and up to a twentieth of the interval
// earlier. Probes of many clusters thus happen at the same time, and an idle process sleeps in between.
func alignedTime(now time.Time, interval time.Duration) time.Time {
	const moments = 20
	at := now.Add(interval)
	return at.Add(-at.Sub(at.Truncate(interval / moments)))
}

// failed returns the state after a failed probe or attempt. fatal means that the connection cannot recover because the
// credentials were rejected.
func (s connectionState) failed(now time.Time, problem string, fatal bool, t Timing) connectionState {
	s.failures++
	s.problem = problem
	if s.connected && !fatal && s.failures < t.FailureThreshold {
		s.due = now.Add(t.ProbeInterval)
		return s
	}
	if s.connected {
		s.connected, s.since = false, now
	}
	if s.downSince.IsZero() {
		s.downSince = now
	}
	s.due = now.Add(backoff(now.Sub(s.downSince), t))
	return s
}

// backoff returns an eighth of the duration of the outage, so that a cluster that starts within seconds is connected
// within a second, and a cluster that is down for minutes causes little load.
func backoff(down time.Duration, t Timing) time.Duration {
	return min(max(down/8, t.RetryMin), t.RetryMax)
}
