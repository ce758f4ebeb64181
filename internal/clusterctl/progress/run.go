package progress

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/clusterctl/tree"
	"github.com/slipwayhq/slipway/internal/fault"
)

// ReasonTimeout says that the time for a wait is over; the kind is Transient.
const ReasonTimeout = "WaitTimeout"

// patience is how many reads in a row may find the management cluster unreachable: it may be restarting.
const patience = 15

// Source is where snapshots come from.
type Source interface {
	// Snapshot reads the cluster.
	Snapshot(ctx context.Context) (tree.Snapshot, error)
	// Wait returns when the cluster may have changed, or with the error of ctx.
	Wait(ctx context.Context) error
}

// Reporter shows steps. Show is called after every read, also when nothing has changed.
type Reporter interface {
	Show(steps []Step)
}

// Run follows a cluster until decide's steps are all done. decide gets every snapshot, and the error of reading it
// (the API's not-found when the Cluster is gone); an error that it returns ends the wait. When ctx ends, the error
// says what was still waited for.
func Run(ctx context.Context, src Source, decide func(tree.Snapshot, error) ([]Step, error), show Reporter) error {
	var steps []Step
	failures := 0
	for {
		s, err := src.Snapshot(ctx)
		switch {
		case ctx.Err() != nil:
			return over(ctx, steps)
		case fault.KindOf(err) == fault.Unreachable && failures < patience:
			failures++
		default:
			failures = 0
			if steps, err = decide(s, err); err != nil {
				return err
			}
			show.Show(steps)
			if done(steps) {
				return nil
			}
		}
		if err := src.Wait(ctx); err != nil {
			return over(ctx, steps)
		}
	}
}

func done(steps []Step) bool {
	for _, s := range steps {
		if !s.Done {
			return false
		}
	}
	return true
}

// over is the error of a wait that was ended from outside.
func over(ctx context.Context, steps []Step) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	var waits []string
	for _, s := range steps {
		if !s.Done {
			waits = append(waits, strings.TrimSuffix(fmt.Sprintf("%s: %s", s.Name, s.Detail), ": "))
		}
	}
	if len(waits) == 0 {
		return fault.New(fault.Transient, ReasonTimeout, "the time to wait is over before the management cluster answered")
	}
	return fault.New(fault.Transient, ReasonTimeout, "the time to wait is over; still to come: %s", strings.Join(waits, "; "))
}

// Elapsed prints a duration the way progress shows it: whole seconds, minutes from 100 s on.
func Elapsed(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	if s < 100 {
		return fmt.Sprintf("%ds", s)
	}
	return fmt.Sprintf("%dm%02ds", s/60, s%60)
}
