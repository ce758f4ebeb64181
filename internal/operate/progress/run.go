package progress

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
)

// ReasonTimeout is the reason when a wait timed out; Transient.
const ReasonTimeout = "WaitTimeout"

// maxUnreachableReads is the maximum number of consecutive reads during which a cluster may be unreachable, because it
// may be restarting.
const maxUnreachableReads = 15

// Source provides snapshots of a cluster; [API] implements it.
type Source interface {
	// Snapshot reads the cluster.
	Snapshot(ctx context.Context) (describe.Snapshot, error)
	// Wait returns when the cluster may have changed, or with the error of ctx.
	Wait(ctx context.Context) error
}

// Reporter displays steps; [Plain] and [Live] implement it. Show is called after every read, even if nothing has
// changed.
type Reporter interface {
	Show(steps []Step)
}

// Run follows a cluster until all of decide's steps are done. decide receives every snapshot, or the error of the read
// (NotFound if the Cluster is gone); an error that it returns ends the wait. If ctx times out, the error lists the
// steps that are not done. [WaitForCreation] and `slipway delete cluster` call it.
func Run(ctx context.Context, src Source, decide func(describe.Snapshot, error) ([]Step, error), show Reporter) error {
	var steps []Step
	failures := 0
	for {
		s, err := src.Snapshot(ctx)
		switch {
		case ctx.Err() != nil:
			return timeoutError(ctx, steps)
		case fault.KindOf(err) == fault.Unreachable && failures < maxUnreachableReads:
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
			return timeoutError(ctx, steps)
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

// timeoutError returns the error for a wait that ended with ctx.
func timeoutError(ctx context.Context, steps []Step) error {
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
		return fault.New(fault.Transient, ReasonTimeout, "the wait timed out before the management cluster responded")
	}
	return fault.New(fault.Transient, ReasonTimeout, "the wait timed out; unfinished steps: %s", strings.Join(waits, "; "))
}

// Elapsed formats a duration for display: in seconds, from 100 s on with minutes.
func Elapsed(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	if s < 100 {
		return fmt.Sprintf("%ds", s)
	}
	return fmt.Sprintf("%dm%02ds", s/60, s%60)
}

// WaitForCreation waits until the cluster is available with all its nodes, and reports the progress. The commands that
// create, upgrade and wait for a cluster call it. If the cluster does not exist or is deleted meanwhile, the fault is
// Gone.
func WaitForCreation(ctx context.Context, c client.WithWatch, key client.ObjectKey, show Reporter) error {
	return Run(ctx, NewAPI(ctx, c, key), func(s describe.Snapshot, err error) ([]Step, error) {
		if apierrors.IsNotFound(err) {
			return nil, fault.New(fault.Gone, reasonDeleted, "cluster %q does not exist", key.Name).From(err)
		}
		if err != nil {
			return nil, err
		}
		return creation(s)
	}, show)
}
