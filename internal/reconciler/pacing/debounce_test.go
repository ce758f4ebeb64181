package pacing

import (
	"fmt"
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
		{"one that follows soon waits", "m", 30 * ms, 70 * ms},
		{"and so does the next: they start it together", "m", 60 * ms, 40 * ms},
		{"another key does not wait", "other", 60 * ms, 0},
		{"that start", "m", 100 * ms, 0},
		{"the interval begins with it", "m", 150 * ms, 50 * ms},
		{"after a long time work starts at once", "m", time.Hour, 0},
	}
	d := Debouncer[string]{Interval: 100 * ms}
	for _, step := range steps {
		if got := d.Delay(step.key, now.Add(step.at), 10*ms); got != step.want {
			t.Errorf("%s: want %s, got %s", step.what, step.want, got)
		}
	}
	var none Debouncer[string]
	for range 2 {
		if left := none.Delay("m", now, time.Second); left != 0 {
			t.Errorf("the zero value: want no delay, got %s", left)
		}
	}
}

func TestDebouncerForgets(t *testing.T) {
	d, now := Debouncer[string]{Interval: time.Second}, time.Unix(1e9, 0)
	for i := range 10000 {
		d.Delay(fmt.Sprint(i), now.Add(time.Duration(i)*time.Millisecond), 0)
	}
	if n := len(d.started); n > 3000 { // the intervals of a thousand last
		t.Errorf("%d keys are remembered", n)
	}
}
