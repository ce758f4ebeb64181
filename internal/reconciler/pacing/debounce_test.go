package pacing

import (
	"testing"
	"time"
)

func TestDebouncer(t *testing.T) { // FG-03
	now, ms := time.Unix(1e9, 0), time.Millisecond
	steps := []struct {
		what string
		key  string
		at   time.Duration
		want time.Duration
	}{
		{"the first event starts work at once", "m", 0, 0},
		{"an event soon after waits", "m", 30 * ms, 70 * ms},
		{"and the next one, too: they start work together", "m", 60 * ms, 40 * ms},
		{"another key does not wait", "other", 60 * ms, 0},
		{"the common start", "m", 100 * ms, 0},
		{"the interval begins with it", "m", 150 * ms, 50 * ms},
		{"after a long time work starts at once", "m", time.Hour, 0},
	}
	d := Debouncer[string]{Interval: 100 * ms}
	for _, step := range steps {
		if got := d.Delay(step.key, now.Add(step.at)); got != step.want {
			t.Errorf("%s: want %s, got %s", step.what, step.want, got)
		}
	}
	d.Reset("m")
	d.Reset("other")
	if n := len(d.started); n != 0 {
		t.Errorf("%d keys are remembered", n)
	}
	var none Debouncer[string]
	for range 2 {
		if left := none.Delay("m", now); left != 0 {
			t.Errorf("the zero value: want no delay, got %s", left)
		}
	}
}
