package harness

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// lent is a host that takes these parts of the processor time, period by period, and the last part from then on.
type lent struct {
	*Host
	stolen []float64
	spent  CPUTime
	lines  []string
}

func lending(patience time.Duration, stolen ...float64) *lent {
	l := &lent{stolen: stolen}
	l.Host = NewHost(patience, func(format string, args ...any) { l.lines = append(l.lines, fmt.Sprintf(format, args...)) })
	l.cpu = func() CPUTime { return l.spent }
	l.sleep = func(ctx context.Context, d time.Duration) {
		l.spend(d)
		Check(ctx.Err())
	}
	return l
}

func (l *lent) spend(d time.Duration) {
	l.spent.All += 2 * d
	l.spent.Stolen += time.Duration(l.stolen[0] * float64(2*d))
	if len(l.stolen) > 1 {
		l.stolen = l.stolen[1:]
	}
}

func TestWaitQuiet(t *testing.T) {
	const moment = 3 * time.Second
	cases := map[string]struct {
		reason   string
		patience time.Duration
		stolen   []float64
		waited   time.Duration
		logged   int
	}{
		"at once":      {"the host takes nothing", time.Hour, []float64{0}, 0, 0},
		"next to":      {"0.5 % counts", time.Hour, []float64{0.005}, 0, 0},
		"in the end":   {"two moments are lost", time.Hour, []float64{0.2, 0.006, 0, 1}, 2 * moment, 1},
		"never":        {"there is an end", 10 * moment, []float64{0.2}, 10 * moment, 1},
		"for minutes":  {"it logs once a minute", 61 * moment, []float64{0.2}, 61 * moment, 4},
		"no patience":  {"the clusters recover in one moment", 0, []float64{0.2}, 0, 0},
		"late, though": {"little patience is not exceeded by more than a moment", time.Second, []float64{0.2}, moment, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := lending(tc.patience, tc.stolen...)
			l.WaitQuiet(t.Context(), moment)
			if l.Waited != tc.waited || len(l.lines) != tc.logged {
				t.Errorf("%s: waited %s, want %s; logged %q, want %d", tc.reason, l.Waited, tc.waited, l.lines, tc.logged)
			}
			if l.spent.All == 0 {
				t.Error("clusters with a fault had no time to recover")
			}
		})
	}
}

func TestWaitQuietEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Try(func() { lending(time.Hour, 1).WaitQuiet(ctx, time.Second) }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the context", err)
	}
}

func TestMustRepeat(t *testing.T) {
	l := lending(20*time.Second, 0)
	if stolen := l.StolenDuring(func() { l.spend(time.Second) }); stolen != 0 {
		t.Errorf("%v of the time stolen", stolen)
	}
	if l.MustRepeat(0.005, 15*time.Second) || l.Repeats != 0 || l.Waited != 0 {
		t.Errorf("that much counts; again %d, waited %s", l.Repeats, l.Waited)
	}
	for range 2 {
		if !l.MustRepeat(0.006, 15*time.Second) {
			t.Error("there is patience left")
		}
	}
	if l.MustRepeat(0.9, 15*time.Second) {
		t.Error("there is no patience left")
	}
	if l.Repeats != 2 || l.Waited != 30*time.Second || len(l.lines) != 2 {
		t.Errorf("again %d, waited %s, logged %q", l.Repeats, l.Waited, l.lines)
	}
}
