package process

import (
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	tests := map[string]struct {
		reason string
		view   view
		do     step
		again  time.Duration // from now; zero: none
	}{
		"first start": {
			reason: "there is nothing to wait for",
			view:   view{wanted: true, since: now}, do: start,
		},
		"healthy": {
			reason: "nothing to do",
			view:   view{wanted: true, alive: true, current: true, since: ago(time.Hour), healthy: ago(time.Second)}, do: stay,
		},
		"taken over": {
			reason: "a process that an earlier slipway started is kept",
			view:   view{wanted: true, alive: true, current: true, since: now}, do: stay,
		},
		"another configuration": {
			reason: "it is started again with the new one",
			view:   view{wanted: true, alive: true, since: ago(time.Hour), healthy: now}, do: end,
		},
		"not wanted": {
			reason: "its cluster is deleted",
			view:   view{alive: true, since: ago(time.Hour)}, do: end,
		},
		"not wanted and gone": {
			reason: "nothing is left to do",
			view:   view{since: ago(time.Hour)}, do: stay,
		},
		"died a moment ago": {
			reason: "the first pause is short",
			view:   view{wanted: true, since: ago(100 * time.Millisecond), failures: 1}, do: stay, again: 150 * time.Millisecond,
		},
		"died, pause over": {
			reason: "it is started again",
			view:   view{wanted: true, since: ago(time.Second), failures: 1}, do: start,
		},
		"keeps dying": {
			reason: "pauses grow",
			view:   view{wanted: true, since: ago(time.Second), failures: 4}, do: stay, again: time.Second,
		},
		"dies for ever": {
			reason: "pauses have a longest",
			view:   view{wanted: true, since: now, failures: 1000}, do: stay, again: longestPause,
		},
		"slow start": {
			reason: "a large database may take its time",
			view:   view{wanted: true, alive: true, current: true, since: ago(readyWithin - time.Second)}, do: stay,
		},
		"start that hangs": {
			reason: "it would hang for ever",
			view:   view{wanted: true, alive: true, current: true, since: ago(readyWithin)}, do: end,
		},
		"unhealthy for a moment": {
			reason: "load passes",
			view:   view{wanted: true, alive: true, current: true, since: ago(time.Hour), healthy: ago(sickAfter - time.Second)}, do: stay,
		},
		"unhealthy for long": {
			reason: "it hangs",
			view:   view{wanted: true, alive: true, current: true, since: ago(time.Hour), healthy: ago(sickAfter)}, do: end,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			do, again, _ := next(test.view, now)
			if do != test.do {
				t.Errorf("got step %d, want %d: %s", do, test.do, test.reason)
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
