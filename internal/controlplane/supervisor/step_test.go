package supervisor

import (
	"os"
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	tests := map[string]struct {
		reason string
		view   processState
		do     step
		again  time.Duration // from now; zero: none
		why    string        // of a process that is given up
	}{
		"first start": {
			reason: "there is nothing to wait for",
			view:   processState{wanted: true, since: now}, do: start,
		},
		"healthy": {
			reason: "nothing to do",
			view:   processState{wanted: true, alive: true, current: true, since: ago(time.Hour), wasHealthy: true}, do: keepState,
		},
		"taken over": {
			reason: "a process that an earlier slipway started is kept",
			view:   processState{wanted: true, alive: true, current: true, since: now}, do: keepState,
		},
		"another configuration": {
			reason: "it is started again with the new one",
			view:   processState{wanted: true, alive: true, since: ago(time.Hour), wasHealthy: true}, do: end,
		},
		"not wanted": {
			reason: "its cluster is deleted",
			view:   processState{alive: true, since: ago(time.Hour)}, do: end,
		},
		"not wanted and gone": {
			reason: "nothing is left to do",
			view:   processState{since: ago(time.Hour)}, do: keepState,
		},
		"died a moment ago": {
			reason: "the first pause is short",
			view:   processState{wanted: true, since: ago(100 * time.Millisecond), failures: 1}, do: keepState, again: 150 * time.Millisecond,
		},
		"died, pause over": {
			reason: "it is started again",
			view:   processState{wanted: true, since: ago(time.Second), failures: 1}, do: start,
		},
		"keeps dying": {
			reason: "pauses grow",
			view:   processState{wanted: true, since: ago(time.Second), failures: 4}, do: keepState, again: time.Second,
		},
		"dies for ever": {
			reason: "pauses have a longest",
			view:   processState{wanted: true, since: now, failures: 1000}, do: keepState, again: longestPause,
		},
		"slow start": {
			reason: "it works, for as long as the host needs",
			view:   running(processState{since: ago(50 * time.Minute), progress: progress{unanswered: 50 * time.Minute, spent: time.Minute}}), do: keepState,
		},
		"start that rests for a moment": {
			reason: "a large database may take its time",
			view:   running(processState{progress: progress{idle: readyWithin - time.Second}}), do: keepState,
		},
		"start that hangs": {
			reason: "it would hang for ever",
			view:   running(processState{progress: progress{idle: readyWithin}}), do: restartHung, why: "it did not become ready in time and showed no activity",
		},
		"start that spins": {
			reason: "it works and comes to nothing",
			view:   running(processState{progress: progress{spent: spentWithin}}), do: restartHung, why: "it did not become ready in time, although it was active",
		},
		"unhealthy for a moment": {
			reason: "load passes",
			view:   running(processState{wasHealthy: true, progress: progress{idle: unhealthyAfter - time.Second}}), do: keepState,
		},
		"slow": {
			reason: "a restart is the most expensive thing that a host without processor time can do",
			view:   running(processState{wasHealthy: true, progress: progress{unanswered: 20 * time.Minute, spent: 2 * time.Minute}}), do: keepState,
		},
		"hangs": {
			reason: "neither an answer nor work",
			view:   running(processState{wasHealthy: true, progress: progress{idle: unhealthyAfter}}), do: restartHung, why: "its health check failed and it showed no activity",
		},
		"spins": {
			reason: "it has used more time of processors than a start takes, without a good answer",
			view:   running(processState{wasHealthy: true, progress: progress{spent: spentWithin}}), do: restartHung, why: "its health check failed for too long, although it was active",
		},
		"hung once more": {
			reason: "what was not enough the last time is doubled",
			view:   running(processState{wasHealthy: true, hung: 1, progress: progress{idle: unhealthyAfter, spent: spentWithin}}), do: keepState,
		},
		"hangs each time": {
			reason: "the limits do not grow without end",
			view:   running(processState{hung: 100, progress: progress{idle: readyWithin << mostPatience}}), do: restartHung, why: "it did not become ready in time and showed no activity",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			do, again, why := next(test.view, now)
			if do != test.do || test.do == restartHung && why != test.why {
				t.Errorf("got step %d (%s), want %d (%s): %s", do, why, test.do, test.why, test.reason)
			}
			var want time.Time
			if test.again > 0 {
				want = now.Add(test.again)
			}
			if !again.Equal(want) {
				t.Errorf("look again at %s, want %s: %s", again, want, test.reason)
			}
		})
	}
}

// running is the view of a process that is as it should be but for what is given.
func running(v processState) processState {
	v.wanted, v.alive, v.current = true, true, true
	return v
}

// A process is idle while it neither answers nor works, in the time that the supervisor has seen.
func TestProgress(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	type look struct {
		after   time.Duration
		answers bool
		done    work // since the last look
	}
	minute := func(l look) (all []look) {
		for range 12 {
			all = append(all, l)
		}
		return all
	}
	tests := map[string]struct {
		reason string
		looks  []look
		want   progress
	}{
		"hangs": {
			"its timers use little", minute(look{after: 5 * time.Second, done: work{used: 100 * time.Millisecond}}),
			progress{idle: 55 * time.Second, unanswered: 55 * time.Second, spent: 1100 * time.Millisecond},
		},
		"starved": {
			"it waits for a processor", minute(look{after: 5 * time.Second, done: work{used: 10 * time.Millisecond, waited: 4 * time.Second}}),
			progress{unanswered: 55 * time.Second, spent: 110 * time.Millisecond},
		},
		"works": {
			"it has a processor", minute(look{after: 5 * time.Second, done: work{used: 5 * time.Second}}),
			progress{unanswered: 55 * time.Second, spent: 55 * time.Second},
		},
		"reads": {
			"it waits for a disk", minute(look{after: 5 * time.Second, done: work{blocked: true}}), progress{unanswered: 55 * time.Second},
		},
		"answers": {
			"with a failed check: it does not hang", minute(look{after: 5 * time.Second, answers: true}), progress{unanswered: 55 * time.Second},
		},
		"the supervisor did not run": {
			"nothing was seen in that hour", []look{{}, {after: time.Hour}}, progress{idle: maxSampleGap, unanswered: maxSampleGap},
		},
	}
	for name, test := range tests {
		var p progress
		var all work
		at := now
		for _, l := range test.looks {
			at = at.Add(l.after)
			all = work{used: all.used + l.done.used, waited: all.waited + l.done.waited, blocked: l.done.blocked}
			p.record(at, l.answers, func() work { return all })
		}
		got := progress{idle: p.idle, unanswered: p.unanswered, spent: p.spent}
		if got != test.want {
			t.Errorf("%s: got %+v, want %+v: %s", name, got, test.want, test.reason)
		}
	}
}

// What a process does is read from the kernel.
func TestWorkOf(t *testing.T) {
	before := workOf(os.Getpid())
	for began := time.Now(); workOf(os.Getpid()).used-before.used < 10*time.Millisecond; {
		if time.Since(began) > time.Minute {
			t.Fatalf("no work is seen after a minute of it: %+v, then %+v", before, workOf(os.Getpid()))
		}
	}
	if got := workOf(0); got != (work{}) {
		t.Errorf("of no process: %+v", got)
	}
}
