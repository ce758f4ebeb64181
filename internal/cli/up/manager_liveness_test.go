package up

import (
	"testing"
	"time"
)

// The time since when the manager does not respond is the time of its last response, until it responds again.
func TestLiveness(t *testing.T) {
	l := liveness{}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, step := range []struct {
		reason    string
		responded bool
		changed   bool
		since     time.Duration // after the start; negative: it responds
	}{
		{"it responds", true, false, -1},
		{"it does not", false, true, 0},
		{"the time stays", false, false, 0},
		{"it responds again", true, true, -1},
		{"and hangs again", false, true, 45 * time.Second},
	} {
		now := at.Add(time.Duration(i) * 15 * time.Second)
		if got := l.observe(1, step.responded, now); got != step.changed {
			t.Errorf("step %d, %s: changed %v", i, step.reason, got)
		}
		want := at.Add(step.since)
		if step.since < 0 {
			want = time.Time{}
		}
		if !l.since.Equal(want) {
			t.Errorf("step %d, %s: since %v, want %v", i, step.reason, l.since, want)
		}
	}
	if !l.observe(2, false, at.Add(time.Hour)) || !l.since.Equal(at.Add(time.Hour)) {
		t.Errorf("another process that does not respond: since %v", l.since)
	}
	fresh := liveness{}
	if !fresh.observe(1, false, at) || !fresh.since.Equal(at) {
		t.Errorf("without any response: since %v", fresh.since)
	}
}
