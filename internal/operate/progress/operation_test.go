package progress

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Temporary errors are retried, a message is reported once, and other errors end the operation.
func TestFollow(t *testing.T) {
	away, conflict := fault.New(fault.Unreachable, "X", "away"), fault.New(fault.Conflict, "X", "changed")
	for name, tc := range map[string]struct {
		errs  []error // of the steps, in their order; then it is done
		says  string
		steps int
	}{
		"at once":          {nil, "", 1},
		"while it is away": {[]error{away, conflict, away, nil, away, away}, "", 7},
		"away for long":    {slices.Repeat([]error{away}, maxUnreachableSteps+1), "away", maxUnreachableSteps + 1},
		"another error":    {[]error{errors.New("no")}, "no", 1},
	} {
		var said []string
		n := 0
		r := Operation{Interval: time.Nanosecond, Progress: func(text string) { said = append(said, text) }}
		err := r.Follow(t.Context(), "late", func(context.Context) (bool, string, error) {
			n++
			if n > len(tc.errs) {
				return true, "waiting", nil
			}
			return false, "waiting", tc.errs[n-1]
		})
		if n != tc.steps || (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) || len(said) > 1 {
			t.Errorf("%s: %d steps, %v, said %q", name, n, err, said)
		}
	}
}

func TestEnded(t *testing.T) {
	waits := func(context.Context) (bool, string, error) { return false, "the moon", nil }
	r := Operation{Interval: time.Nanosecond}
	late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := r.Follow(late, "not done", waits); fault.KindOf(err) != fault.Transient || !strings.Contains(err.Error(), "not done; last progress: the moon") {
		t.Errorf("the time is over: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := r.Follow(ended, "not done", waits); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
