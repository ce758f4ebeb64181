package host

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/test/bench/procfs"
)

// lent is a host that gives that part of the processors' time to others, moment by moment, and the last for ever.
type lent struct {
	*Host
	stolen []float64
	spent  procfs.CPU
	said   []string
}

func lending(patience time.Duration, stolen ...float64) *lent {
	l := &lent{stolen: stolen}
	l.Host = New(patience, func(format string, args ...any) { l.said = append(l.said, fmt.Sprintf(format, args...)) })
	l.cpu = func() (procfs.CPU, error) { return l.spent, nil }
	l.pause = func(ctx context.Context, d time.Duration) error {
		l.spend(d)
		return ctx.Err()
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

func TestQuiet(t *testing.T) {
	const moment = 3 * time.Second
	cases := map[string]struct {
		reason   string
		patience time.Duration
		stolen   []float64
		held     time.Duration
		said     int
	}{
		"at once":      {"the host takes nothing", time.Hour, []float64{0}, 0, 0},
		"next to":      {"0.5 % counts", time.Hour, []float64{0.005}, 0, 0},
		"in the end":   {"two moments are lost", time.Hour, []float64{0.2, 0.006, 0, 1}, 2 * moment, 1},
		"never":        {"there is an end", 10 * moment, []float64{0.2}, 10 * moment, 1},
		"for minutes":  {"it says so once a minute", 61 * moment, []float64{0.2}, 61 * moment, 4},
		"no patience":  {"the clusters recover in one moment", 0, []float64{0.2}, 0, 0},
		"late, though": {"little patience is not exceeded by more than a moment", time.Second, []float64{0.2}, moment, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := lending(tc.patience, tc.stolen...)
			if err := l.Quiet(t.Context(), moment); err != nil {
				t.Fatal(err)
			}
			if l.Held != tc.held || len(l.said) != tc.said {
				t.Errorf("%s: held %s, want %s; said %q, want %d", tc.reason, l.Held, tc.held, l.said, tc.said)
			}
			if l.spent.All == 0 {
				t.Error("the sick clusters did not get the time to recover")
			}
		})
	}
}

func TestQuietEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := lending(time.Hour, 1).Quiet(ctx, time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
	l := lending(time.Hour, 0)
	unreadable := errors.New("unreadable")
	l.cpu = func() (procfs.CPU, error) { return procfs.CPU{}, unreadable }
	if err := l.Quiet(t.Context(), time.Second); !errors.Is(err, unreadable) {
		t.Errorf("%v, want %v", err, unreadable)
	}
}

func TestSpoiled(t *testing.T) {
	l := lending(20*time.Second, 0)
	stolen, err := l.During(func() error { l.spend(time.Second); return nil })
	if err != nil || stolen != 0 {
		t.Errorf("%v of the time stolen, %v", stolen, err)
	}
	if l.Spoiled(0.005, 15*time.Second) || l.Again != 0 || l.Held != 0 {
		t.Errorf("that much counts; again %d, held %s", l.Again, l.Held)
	}
	for range 2 {
		if !l.Spoiled(0.006, 15*time.Second) {
			t.Error("there is patience left")
		}
	}
	if l.Spoiled(0.9, 15*time.Second) {
		t.Error("there is no patience left")
	}
	if l.Again != 2 || l.Held != 30*time.Second || len(l.said) != 2 {
		t.Errorf("again %d, held %s, said %q", l.Again, l.Held, l.said)
	}
}
