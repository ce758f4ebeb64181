package rotate

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pause"
)

// interval is the default polling interval.
const interval = time.Second

// StepRunner repeats a step.
type StepRunner struct {
	// Interval is the polling interval. Default: 1 s.
	Interval time.Duration
	// MaxUnreachable is the maximum number of consecutive steps during which a cluster may be unreachable, because it may be
	// restarting.
	MaxUnreachable int
	// Progress is called with the reason for waiting when it changes; it may be nil.
	Progress func(string)
	// Timeout returns the error after a timeout; said is the last reason for waiting.
	Timeout func(said string, cause error) error
}

// Run repeats the step until it is done. It retries after a conflict.
func (r StepRunner) Run(ctx context.Context, step func(context.Context) (done bool, wait string, err error)) error {
	said, failures, every := "", 0, r.Interval
	if every == 0 {
		every = interval
	}
	for {
		done, text, err := step(ctx)
		switch {
		case ctx.Err() != nil:
			return r.over(ctx, said)
		case fault.KindOf(err) == fault.Conflict || apierrors.IsConflict(err): // retried with current objects
		case fault.KindOf(err) == fault.Unreachable && failures < r.MaxUnreachable:
			failures++
		case err != nil:
			return err
		default:
			failures = 0
		}
		if text != "" && text != said {
			said = text
			if r.Progress != nil {
				r.Progress(text)
			}
		}
		if done {
			return nil
		}
		if err := pause.Sleep(ctx, every); err != nil {
			return r.over(ctx, said)
		}
	}
}

// over returns the error for a run that ended with ctx.
func (r StepRunner) over(ctx context.Context, said string) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	return r.Timeout(said, ctx.Err())
}
