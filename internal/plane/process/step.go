package process

import "time"

// step is what is to be done about a process now.
type step int

const (
	stay  step = iota // nothing
	start             // it is wanted and does not live
	end               // it lives and is not wanted, or not in this form
)

// Times of supervision.
const (
	firstPause   = 250 * time.Millisecond // before the first restart; doubled for each one after it
	longestPause = 30 * time.Second
	// stableAfter is how long a process must live for the pauses to start over.
	stableAfter = time.Minute
	// sickAfter is how long a process that was ready may fail its health check before it is restarted.
	sickAfter = time.Minute
	// readyWithin is how long a start may take before it counts as unhealthy.
	readyWithin = 3 * time.Minute
)

// view is what next decides about.
type view struct {
	wanted  bool
	alive   bool
	current bool // it runs this binary's Kubernetes version with the wanted configuration
	// since when it is alive or, where it is not, dead.
	since time.Time
	// healthy is when its health was last found good; zero: never.
	healthy time.Time
	// failures counts deaths in a row that came before stableAfter.
	failures int
}

// next decides, and says when to look again at the latest; zero: when something
// happens.
func next(v view, now time.Time) (do step, again time.Time, reason string) {
	switch {
	case !v.wanted && v.alive:
		return end, time.Time{}, "not wanted any more"
	case !v.wanted:
		return stay, time.Time{}, ""
	case !v.alive:
		due := v.since.Add(pause(v.failures))
		if now.Before(due) {
			return stay, due, ""
		}
		return start, time.Time{}, ""
	case !v.current:
		return end, time.Time{}, "its configuration or version changed"
	case v.healthy.IsZero() && now.Sub(v.since) >= readyWithin:
		return end, time.Time{}, "it was not ready in time"
	case !v.healthy.IsZero() && now.Sub(v.healthy) >= sickAfter:
		return end, time.Time{}, "its health check failed"
	}
	return stay, time.Time{}, ""
}

// pause is how long to wait before a start after so many failures in a row.
func pause(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	p := firstPause
	for range failures - 1 {
		p = min(2*p, longestPause)
	}
	return p
}
