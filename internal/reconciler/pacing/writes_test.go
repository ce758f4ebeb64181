package pacing

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type writes = WriteDebouncer[string, string]

func TestWriteDebouncer(t *testing.T) { // FG-03
	now, ms := time.Unix(1e9, 0), time.Millisecond
	w := writes{Interval: time.Second}
	for _, step := range []struct {
		what    string
		key     string
		at      time.Duration
		urgent  bool
		want    time.Duration
		written bool
	}{
		{"a change is deferred by one interval", "m", 0, false, time.Second, false},
		{"a later change does not extend the delay", "m", 300 * ms, false, 700 * ms, false},
		{"another object has its own delay", "other", 300 * ms, false, time.Second, false},
		{"after the interval it is written", "m", time.Second, false, 0, true},
		{"the next change is deferred by the same interval", "m", 1100 * ms, false, time.Second, false},
		{"an urgent change is written at once", "m", 1200 * ms, true, 0, true},
		{"it ends the delay of other changes", "m", 1300 * ms, false, time.Second, false},
		{"a write that failed is retried at once", "m", time.Hour, false, 0, false},
		{"until it succeeds", "m", time.Hour, false, 0, true},
		{"after a long time without changes, the delay is the same", "m", 2 * time.Hour, false, time.Second, false},
	} {
		if got := w.Delay(step.key, now.Add(step.at), step.urgent); got != step.want {
			t.Errorf("%s: want %s, got %s", step.what, step.want, got)
		}
		if step.written {
			w.Release(step.key, nil)
		}
	}
	var none writes
	if left := none.Delay("m", now, false); left != 0 {
		t.Errorf("the zero value: want no delay, got %s", left)
	}
}

func TestHeldEvents(t *testing.T) { // FG-03
	w := writes{Interval: time.Second}
	w.Hold("m", []string{"began"})
	w.Delay("m", time.Unix(1e9, 0), false)
	w.Hold("m", []string{"began", "created"})
	if diff := cmp.Diff([]string{"began", "created", "ready"}, w.Release("m", []string{"created", "ready"})); diff != "" {
		t.Errorf("each event once (-want +got):\n%s", diff)
	}
	for i := range 1000 {
		key := fmt.Sprint(i)
		w.Hold(key, []string{"began"})
		w.Release(key, nil)
	}
	if n := len(w.deferred); n != 0 {
		t.Errorf("%d objects are remembered", n)
	}
}
