// Package steps runs one step after the other until there is nothing left to do, though the management cluster restarts meanwhile.
//
// Does: repeats a step ([Runner.Run]), says what it waits for where that changes, and goes on where a cluster does not answer for a while.
//
// Never: decides what a step is.
//
// Read first: [Runner].
package steps

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pause"
)

// interval is how often it is looked how far something is, by default.
const interval = time.Second

// Runner repeats steps.
type Runner struct {
	// Interval is how often it is looked how far something is; default 1 s.
	Interval time.Duration
	// Patience is how many steps in a row may find a cluster unreachable: it may be restarting.
	Patience int
	// Say is told what is waited for, where that changes; may be nil.
	Say func(string)
	// Timeout makes the error of a time to wait that is over; said is what was waited for.
	Timeout func(said string, cause error) error
}

// Run repeats the step until it is done. A step that met a conflict is taken again.
func (r Runner) Run(ctx context.Context, step func(context.Context) (done bool, wait string, err error)) error {
	said, failures, every := "", 0, r.Interval
	if every == 0 {
		every = interval
	}
	for {
		done, text, err := step(ctx)
		switch {
		case ctx.Err() != nil:
			return r.over(ctx, said)
		case fault.KindOf(err) == fault.Conflict || apierrors.IsConflict(err): // decided again
		case fault.KindOf(err) == fault.Unreachable && failures < r.Patience:
			failures++
		case err != nil:
			return err
		default:
			failures = 0
		}
		if text != "" && text != said {
			said = text
			if r.Say != nil {
				r.Say(text)
			}
		}
		if done {
			return nil
		}
		if err := pause.For(ctx, every); err != nil {
			return r.over(ctx, said)
		}
	}
}

// over is the error of steps that were ended from outside.
func (r Runner) over(ctx context.Context, said string) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	return r.Timeout(said, ctx.Err())
}
