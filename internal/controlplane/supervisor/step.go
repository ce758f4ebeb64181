package supervisor

import (
	"time"

	"github.com/slipwayhq/slipway/internal/pause"
)

// step is an action on a process.
type step int

const (
	keepState   step = iota // nothing
	start                   // it must run and does not
	end                     // it runs and must not, or not with this configuration
	restartHung             // it runs and hangs; the restart counts as a failure
)

// Time limits of supervision. A slow process is not restarted, because a start is its most expensive
// operation.
const (
	firstPause   = 250 * time.Millisecond // before the first restart; doubled for each further one
	longestPause = 30 * time.Second
	// stableAfter is the time of successful operation after which the backoff is reset.
	stableAfter = time.Minute
	// unhealthyAfter is how long a process that was ready may fail its health checks without activity before it is
	// restarted.
	unhealthyAfter = 2 * time.Minute
	// readyWithin is how long a start may be inactive before it counts as hanging.
	readyWithin = 3 * time.Minute
	// spentWithin is the processor time that a process may use without a successful health check. A start
	// needs seconds of it. On a slow host, it takes long to use as much.
	spentWithin = 10 * time.Minute
	// healthyWithin is how long a process may go without a successful health check in any case.
	healthyWithin = time.Hour
	// mostPatience is how many times these limits are doubled for a process that was restarted because of
	// them.
	mostPatience = 3
)

// processState is the input of next. The supervision loop maintains it.
type processState struct {
	wanted  bool
	alive   bool
	current bool // it runs the desired Kubernetes version and configuration, or has not published them yet
	// since is when it started or, if it does not run, exited.
	since time.Time
	// wasHealthy means that a health check has succeeded since the start.
	wasHealthy bool
	// progress since the last successful health check or, before the first one, since the start.
	progress progress
	// failures counts consecutive unexpected exits of a process that was not stable.
	failures int
	// hung counts consecutive restarts of a process that hung.
	hung int
}

// next returns the next action for a control plane process, and the time of the next check at the latest. A zero time
// means on the next event. It is pure; the supervision loop calls it in each iteration. The reason completes "it was
// stopped, because".
func next(v processState, now time.Time) (do step, again time.Time, reason string) {
	switch {
	case !v.wanted && v.alive:
		return end, time.Time{}, "it is no longer needed"
	case !v.wanted:
		return keepState, time.Time{}, ""
	case !v.alive:
		due := v.since.Add(pause.Backoff(v.failures, firstPause, longestPause))
		if now.Before(due) {
			return keepState, due, ""
		}
		return start, time.Time{}, ""
	case !v.current:
		return end, time.Time{}, "its configuration or version changed"
	}
	if reason := v.hangs(); reason != "" {
		return restartHung, time.Time{}, reason
	}
	return keepState, time.Time{}, ""
}

// hangs returns why the process counts as hanging, or an empty string if it does not, however slow it is. The
// limits grow with each restart, so that a process for which they are too short eventually succeeds.
func (v processState) hangs() string {
	more := func(limit time.Duration) time.Duration { return limit << min(v.hung, mostPatience) }
	p := v.progress
	switch {
	case !v.wasHealthy && p.idle >= more(readyWithin):
		return "it did not become ready in time and showed no activity"
	case v.wasHealthy && p.idle >= more(unhealthyAfter):
		return "its health check failed and it showed no activity"
	case !v.wasHealthy && (p.spent >= more(spentWithin) || p.unanswered >= more(healthyWithin)):
		return "it did not become ready in time, although it was active"
	case p.spent >= more(spentWithin) || p.unanswered >= more(healthyWithin):
		return "its health check failed for too long, although it was active"
	}
	return ""
}
