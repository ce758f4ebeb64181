package progress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pause"
)

// Operation changes a cluster in phases: a rotation, a snapshot, a restore or a recovery. The packages of these
// operations embed it. Each step reads the current state and does the next part of the work, so that the operation can
// be killed at any time and continues when it is run again.
type Operation struct {
	Client client.Client
	Now    func() time.Time
	// Interval is the time between two steps. Default: 1 s.
	Interval time.Duration
	// Progress is called with a message when the progress changes; it may be nil.
	Progress func(string)
}

// maxUnreachableSteps is the maximum number of consecutive steps during which a cluster may be unreachable, because
// these operations restart its API server.
const maxUnreachableSteps = 30

// Follow repeats a step until it is done, and reports its reason for waiting when it changes. It retries after a
// conflict, and while a cluster may be restarting. timeout describes the state of the operation after a timeout. The
// commands that rotate, recover, restore and take snapshots wait with it.
func (o Operation) Follow(ctx context.Context, timeout string, step func(context.Context) (done bool, wait string, err error)) error {
	last, failures := "", 0
	for {
		done, wait, err := step(ctx)
		switch {
		case err == nil && done: // also if ctx has ended meanwhile
		case ctx.Err() != nil:
			return operationEnd(ctx, timeout, last)
		case fault.KindOf(err) == fault.Conflict || apierrors.IsConflict(err): // retried with current objects
		case fault.KindOf(err) == fault.Unreachable && failures < maxUnreachableSteps:
			failures++
		case err != nil:
			return err
		default:
			failures = 0
		}
		if wait != "" && wait != last {
			last = wait
			o.Report("%s", wait)
		}
		if done {
			return nil
		}
		if err := pause.Sleep(ctx, cmp.Or(o.Interval, time.Second)); err != nil {
			return operationEnd(ctx, timeout, last)
		}
	}
}

// operationEnd returns the error for an operation that ended with ctx.
func operationEnd(ctx context.Context, timeout, last string) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	if last != "" {
		timeout += "; last progress: " + last
	}
	return fault.New(fault.Transient, "Timeout", "%s", timeout).From(ctx.Err())
}

// Report reports a progress message. Commands that follow an operation report their own messages with it.
func (o Operation) Report(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// Phase is a phase of a planned operation. The rotate commands print it as JSON, so its names and states must stay.
type Phase struct {
	Name string `json:"name"`
	// State is "done", "under way" or "to do".
	State string `json:"state"`
}

// Phases returns the phases of an operation in order. current is the index of the phase in progress; it is negative
// before the operation starts. Both rotations compute the phases of their plans with it.
func Phases(current int, names ...string) []Phase {
	var out []Phase
	for i, name := range names {
		p := Phase{Name: name, State: "to do"}
		if i < current {
			p.State = "done"
		} else if i == current {
			p.State = "under way"
		}
		out = append(out, p)
	}
	return out
}

// PhaseLines formats phases for display. The plans of both rotations call it.
func PhaseLines(phases []Phase) []string {
	var out []string
	for i, p := range phases {
		out = append(out, fmt.Sprintf("  %d. %s [%s]", i+1, p.Name, p.State))
	}
	return out
}
