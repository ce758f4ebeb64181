package process

import "time"

// step is what is to be done about a process now.
type step int

const (
	stay   step = iota // nothing
	start              // it is wanted and does not live
	end                // it lives and is not wanted, or not in this form
	giveUp             // it lives and hangs: it is restarted, which counts
)

// Times of supervision. A process that is slow is not restarted, because a start is the most expensive thing that it can do.
const (
	firstPause   = 250 * time.Millisecond // before the first restart; doubled for each one after it
	longestPause = 30 * time.Second
	// stableAfter is how long a process must live and answer for the pauses to start over.
	stableAfter = time.Minute
	// sickAfter is how long a process that was ready may neither answer its health check nor work before it is restarted.
	sickAfter = 2 * time.Minute
	// readyWithin is how long a start may rest before it counts as one that hangs.
	readyWithin = 3 * time.Minute
	// spentWithin is how much time of processors a process may use without a good answer: a start takes seconds of it. On a host that is
	// slow it takes long to use as much.
	spentWithin = 10 * time.Minute
	// answerWithin is how long a process may go without a good answer whatever it does.
	answerWithin = time.Hour
	// mostPatience is how many times all these limits are doubled for a process that was restarted because of them.
	mostPatience = 3
)

// view is what next decides about.
type view struct {
	wanted  bool
	alive   bool
	current bool // it runs this binary's Kubernetes version with the wanted configuration
	// since when it is alive or, where it is not, dead.
	since time.Time
	// answered: its health was found good since it is alive.
	answered bool
	// progress since its health was last found good or, before the first time, since it is alive.
	progress progress
	// failures counts deaths in a row that came before the process was stable.
	failures int
	// hung counts restarts in a row of a process that hung.
	hung int
}

// next decides, and says when to look again at the latest; zero: when something
// happens. The reason follows "it was ended, because".
func next(v view, now time.Time) (do step, again time.Time, reason string) {
	switch {
	case !v.wanted && v.alive:
		return end, time.Time{}, "it is not wanted any more"
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
	}
	if reason := v.hangs(); reason != "" {
		return giveUp, time.Time{}, reason
	}
	return stay, time.Time{}, ""
}

// hangs is why the process counts as one that hangs; empty: it does not, however slow it is. The limits grow each time, so that a process for
// which they are too small gets through.
func (v view) hangs() string {
	more := func(limit time.Duration) time.Duration { return limit << min(v.hung, mostPatience) }
	p := v.progress
	switch {
	case !v.answered && p.idle >= more(readyWithin):
		return "it was not ready in time: it neither worked nor became ready"
	case v.answered && p.idle >= more(sickAfter):
		return "its health check failed: it neither answered nor worked"
	case !v.answered && (p.spent >= more(spentWithin) || p.unanswered >= more(answerWithin)):
		return "it was not ready in time, although it worked"
	case p.spent >= more(spentWithin) || p.unanswered >= more(answerWithin):
		return "its health check failed for long, although it worked"
	}
	return ""
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
