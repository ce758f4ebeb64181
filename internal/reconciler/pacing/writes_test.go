package pacing

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type writes = WriteDebouncer[string, string]

// TestBusyServerIsForgotten: where nothing is written any more, the interval is no longer that of the last burst of writes.
func TestBusyServerIsForgotten(t *testing.T) { // FG-03
	t0 := time.Unix(1e9, 0)
	w := writes{Interval: time.Second}
	for range 200 {
		w.Wrote(200*time.Millisecond, t0)
	}
	for _, step := range []struct {
		passed, takes, window time.Duration
	}{
		{0, 200 * time.Millisecond, 4 * time.Second},
		{time.Second, 100 * time.Millisecond, 2 * time.Second},
		{3 * time.Second, 25 * time.Millisecond, time.Second},
		{time.Minute, 0, time.Second},
	} {
		now := t0.Add(step.passed)
		if takes, window := w.Latency(now).Round(time.Millisecond), w.stretched(now).Round(10*time.Millisecond); takes != step.takes || window != step.window {
			t.Errorf("after %s: a write takes %s and the window is %s, want %s and %s", step.passed, takes, window, step.takes, step.window)
		}
	}
	w.Wrote(160*time.Millisecond, t0.Add(time.Minute))
	if got := w.Latency(t0.Add(time.Minute)); got != 10*time.Millisecond {
		t.Errorf("the next write begins anew: %s", got)
	}
}

// TestIntervalOfABusyServer: the longer a write takes, the fewer are made.
func TestIntervalOfABusyServer(t *testing.T) { // FG-03
	cases := map[string]struct {
		reason string
		takes  time.Duration
		want   time.Duration
	}{
		"quick":   {"what a write takes does not matter", 10 * time.Millisecond, time.Second},
		"busy":    {"a twentieth of the time is for the writes", 100 * time.Millisecond, 2 * time.Second},
		"drowned": {"a person may be watching", time.Minute, 5 * time.Second},
	}
	now := time.Unix(1e9, 0)
	for name, tc := range cases {
		w := writes{Interval: time.Second}
		for range 200 {
			w.Wrote(tc.takes, now)
		}
		if got := w.stretched(now).Round(10 * time.Millisecond); got != tc.want {
			t.Errorf("%s: %s: want %s, got %s", name, tc.reason, tc.want, got)
		}
	}
}

// TestEndOnABusyServer: that an object is being deleted is written as soon as on one that is not busy, where it is still there.
func TestEndOnABusyServer(t *testing.T) { // FG-03
	t0 := time.Unix(1e9, 0)
	for takes, first := range map[time.Duration]time.Duration{time.Millisecond: 2 * time.Second, time.Minute: 10 * time.Second} {
		w := writes{Interval: time.Second}
		for range 200 {
			w.Wrote(takes, t0)
		}
		if got := w.Delay("new", t0, Initial).Round(100 * time.Millisecond); got != first {
			t.Errorf("a write takes %s: the first change waits for %s, want %s", takes, got, first)
		}
		if got := w.Delay("deleted", t0, DeletionStarted); got != 2*time.Second {
			t.Errorf("a write takes %s: the end waits for %s, want 2s", takes, got)
		}
		if got := w.Delay("deleted", t0.Add(2*time.Second), DeletionStarted); got != 0 {
			t.Errorf("a write takes %s: the end waits for another %s", takes, got)
		}
	}
}

func TestWritesForget(t *testing.T) {
	w := writes{Interval: time.Second}
	now := time.Unix(1e9, 0)
	for i := range 10 * minKeys {
		w.Delay(fmt.Sprint(i), now.Add(time.Duration(i)*10*time.Millisecond), Urgent)
	}
	if n := len(w.objects); n > 2*minKeys {
		t.Errorf("remembers %d objects", n)
	}
}

// TestWritesForgetEvents: objects that were deleted while their events were deferred are never asked for again, and kinds
// without a finalizer have no last reconciliation.
func TestWritesForgetEvents(t *testing.T) { // FG-03
	events := []string{"began"}
	for name, deferred := range map[string]func(*writes, string, time.Time){
		"deferred": func(w *writes, key string, now time.Time) {
			w.Delay(key, now, Initial)
			w.Hold(key, events, now)
		},
		"only its events": func(w *writes, key string, now time.Time) { w.Hold(key, events, now) },
	} {
		w, now := &writes{Interval: time.Second}, time.Unix(1e9, 0)
		for i := range 10 * minKeys {
			now = now.Add(10 * time.Millisecond)
			deferred(w, fmt.Sprint(i), now)
		}
		if n := len(w.objects); n > 2*minKeys {
			t.Errorf("%s: remembers %d objects", name, n)
		}
		lasts := fmt.Sprint(10*minKeys - 1)
		if diff := cmp.Diff(events, w.Release(lasts, nil)); diff != "" {
			t.Errorf("%s: events of a moment ago (-want +got):\n%s", name, diff)
		}
	}
}

// TestWritesKeepEvents: an object whose write is deferred stays remembered for as long as it is reconciled, and those of
// which only the events are remembered are not taken for old ones.
func TestWritesKeepEvents(t *testing.T) { // FG-03
	events := []string{"began"}
	w, now := &writes{Interval: time.Second}, time.Unix(1e9, 0)
	key := "kept"
	w.Hold(key, events, now)
	for i := range 10 * minKeys {
		now = now.Add(10 * time.Millisecond)
		w.Delay(fmt.Sprint(i), now, Urgent)
		if i%100 == 0 {
			w.Hold(key, events, now)
		}
	}
	if diff := cmp.Diff(events, w.Release(key, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
