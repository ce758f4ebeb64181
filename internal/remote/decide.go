package remote

import (
	"crypto/sha256"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// state is what is remembered of one cluster's connection.
type state struct {
	connected bool
	// since is the time of the last change of connected.
	since time.Time
	// lastSuccess is the time of the last probe that was answered.
	lastSuccess time.Time
	// failures counts the probes and attempts that failed in a row.
	failures int
	// problem is why the last probe or attempt failed, for users.
	problem string
	// downSince is the time of the first attempt of the present outage.
	downSince time.Time
	// due is the time of the next probe or attempt.
	due time.Time
	// tried is what the last attempt was made with.
	tried fingerprint
	// excesses counts the connections whose answers took too much memory, the last of them at excessAt.
	excesses int
	excessAt time.Time
}

// fingerprint is everything whose change makes a new attempt worthwhile at once.
type fingerprint struct {
	kubeconfig  [sha256.Size]byte
	endpoint    clusterv1.APIEndpoint
	initialized bool
}

// facts are what one reconciliation observed.
type facts struct {
	now         time.Time
	provisioned bool
	secretRead  bool
	secretFound bool
	stalled     bool // a cache of the connection did not fill in time
	// excess, where set, is why answers for a cache of the connection were not read.
	excess error
	// suspended is the time before which there is to be no connection.
	suspended time.Time
	print     fingerprint
}

// step is what to do next about one cluster.
type step int

const (
	stepWait step = iota
	stepConnect
	stepReconnect
	stepProbe
	stepDisconnect
	stepRefuse
	stepSuspend
)

// next decides about one cluster. A connected cluster
// whose Secret is gone stays connected: its credentials are still good, and a
// new Secret or a refused probe ends it.
func next(s state, f facts) step {
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
			return stepReconnect
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

// recheck is the time until a cluster is reconciled again by time alone; zero: an
// event enqueues it. A missing Secret is read now and then, since one
// without the cluster-name label causes no event.
func recheck(s state, f facts, t Timing) time.Duration {
	switch {
	case !s.connected && !f.provisioned:
		return 0
	case !s.connected && f.secretRead && !f.secretFound:
		return t.RetryMax
	}
	return max(s.due.Sub(f.now), time.Millisecond)
}

// suspend is the state of a cluster that is not connected before a time.
func (s state) suspend(now, until time.Time, problem string) state {
	if s.connected {
		s.connected, s.since = false, now
	}
	s.failures, s.problem, s.due = max(s.failures, 1), problem, until
	return s
}

// exceeded is the state after answers that took too much memory. A cluster that has not done so for long starts over.
func (s state) exceeded(now time.Time, problem string, t Timing) state {
	if now.Sub(s.excessAt) > 2*t.PauseMax {
		s.excesses = 0
	}
	pause := min(t.PauseMin<<min(s.excesses, 16), t.PauseMax)
	s.excesses, s.excessAt = s.excesses+1, now
	return s.suspend(now, now.Add(pause), problem)
}

// answered is the state after a probe or attempt that was answered.
func (s state) answered(now time.Time, t Timing) state {
	if !s.connected {
		s.connected, s.since = true, now
	}
	s.lastSuccess, s.failures, s.problem = now, 0, ""
	s.downSince, s.due = time.Time{}, alignedTime(now, t.ProbeInterval)
	return s
}

// alignedTime is the time of the next probe, an interval from now and up to a twentieth of it less: probes of many clusters
// are made at the same moments, and a process that has nothing else to do sleeps in between.
func alignedTime(now time.Time, interval time.Duration) time.Time {
	const moments = 20
	at := now.Add(interval)
	return at.Add(-at.Sub(at.Truncate(interval / moments)))
}

// failed is the state after a probe or attempt that was not answered. fatal:
// the connection cannot recover by itself (the credentials were refused).
func (s state) failed(now time.Time, problem string, fatal bool, t Timing) state {
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

// backoff is an eighth of the time that the API has not answered, so that a
// cluster that starts in seconds is connected within a second, and one that is down
// for minutes costs little.
func backoff(down time.Duration, t Timing) time.Duration {
	return min(max(down/8, t.RetryMin), t.RetryMax)
}
