package rotate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

// What fails for a while is taken again, what is said is said once, and the rest ends it.
func TestRun(t *testing.T) {
	away, conflict := fault.New(fault.Unreachable, "X", "away"), fault.New(fault.Conflict, "X", "changed")
	for name, tc := range map[string]struct {
		errs  []error // of the steps, in their order; then it is done
		says  string
		steps int
	}{
		"at once":          {nil, "", 1},
		"while it is away": {[]error{away, conflict, away, nil, away, away}, "", 7},
		"away for long":    {[]error{away, away, away}, "away", 3},
		"another error":    {[]error{errors.New("no")}, "no", 1},
	} {
		var said []string
		n := 0
		r := StepRunner{Interval: time.Nanosecond, MaxUnreachable: 2, Progress: func(text string) { said = append(said, text) }}
		err := r.Run(t.Context(), func(context.Context) (bool, string, error) {
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
	r := StepRunner{Interval: time.Nanosecond, Timeout: func(said string, cause error) error {
		return fault.New(fault.Transient, "Timeout", "waited for %s", said).From(cause)
	}}
	late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := r.Run(late, waits); fault.KindOf(err) != fault.Transient || !strings.Contains(err.Error(), "the moon") {
		t.Errorf("the time is over: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := r.Run(ended, waits); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
