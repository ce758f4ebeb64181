package move

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/transfer"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pause"
)

// Options are the options of a move, from the flags of "slipway move".
type Options struct {
	// Scope is the scope of the move.
	Scope graph.Scope
	// Report is called with a progress message for each stage; it may be nil.
	Report func(line string)
	// Mutate changes objects before they are created at the target, for example their namespace. It is also called with
	// objects without spec to determine their IDs at the target.
	Mutate []func(*unstructured.Unstructured) error
	// Timeout is the timeout for providers to release objects, and for the deletion of objects. Zero means two
	// minutes.
	Timeout time.Duration
	// Host has the host resources of both management clusters; nil if they do not share a host, for the reason
	// HostProblem.
	Host        *HostPair
	HostProblem string
	// WithData transfers the data of hosted control planes with the options in Data. Host resources are not transferred
	// then.
	WithData bool
	Data     DataOptions
	// Now is the clock for the names of snapshots; nil means the system clock.
	Now func() time.Time
	// Sleep waits, or returns the error of the context; nil means real time.
	Sleep func(context.Context, time.Duration) error
}

func (o Options) withDefaults() Options {
	if o.Report == nil {
		o.Report = func(string) {}
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.WithData {
		o.Host = nil
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = pause.Sleep
	}
	return o
}

// Move is a move between two management clusters. "slipway move" creates it and calls Plan, Run or Rollback.
type Move struct {
	Options
	source, target *transfer.Endpoint
	// paused is the content of the source after everything was paused and released; nil if it is not known.
	paused *sourceState
	// withFreeHosts selects SSHHosts that nothing uses.
	withFreeHosts bool
}

// New returns a move. It does not access the management clusters yet. `slipway move` calls it.
func New(source, target client.Client, o Options) *Move {
	return &Move{Options: o.withDefaults(), source: transfer.New("source", source), target: transfer.New("target", target)}
}

// Result is the result of a move. [Move.Run] returns it, and `slipway move` prints it.
type Result struct {
	Moved int `json:"moved"`
	// Copied is the number of objects that were created and also remain at the source.
	Copied int `json:"copied"`
	// Reverted means that everything was restored at the source.
	Reverted bool `json:"reverted,omitempty"`
}

// Plan reads both management clusters and returns the plan of [Move.Run]. It writes nothing. `slipway move` calls it to
// display the plan.
func (m *Move) Plan(ctx context.Context) (Plan, error) {
	if _, _, err := m.identities(ctx); err != nil {
		return Plan{}, err
	}
	switch j, _, err := readJournal(ctx, m.source, journalNamespace(m.Scope)); {
	case err != nil:
		return Plan{}, err
	case j != nil:
		return Plan{}, otherMove(m.source, journalNamespace(m.Scope))
	}
	p, err := m.plan(ctx)
	if err != nil {
		return p, err
	}
	return p, p.Err()
}

func (m *Move) plan(ctx context.Context) (Plan, error) {
	f, err := m.readInput(ctx)
	if err != nil {
		return Plan{}, err
	}
	return makePlan(f), nil
}

// Run executes the plan, or continues an interrupted move. `slipway move` calls it.
func (m *Move) Run(ctx context.Context) (Result, error) {
	j, done, err := m.resumeFromJournal(ctx)
	if err != nil || done {
		return Result{}, err
	}
	if j == nil {
		if j, err = m.begin(ctx); err != nil {
			return Result{}, err
		}
	} else {
		m.Report(fmt.Sprintf("Continuing the move that was interrupted while %s", j.Phase))
	}
	return m.runPhases(ctx, j)
}

// Rollback rolls back an interrupted move. `slipway move --rollback` calls it.
func (m *Move) Rollback(ctx context.Context) (Result, error) {
	j, done, err := m.resumeFromJournal(ctx)
	switch {
	case err != nil:
		return Result{}, err
	case done:
		return Result{}, fault.New(fault.Invalid, "MoveEnded", "the move had ended, and its journal is deleted now: to have everything back, move it back")
	case j == nil:
		return Result{}, fault.New(fault.Invalid, "NothingToTakeBack", "no move is under way: there is nothing to take back")
	case j.Phase == deleting && j.WithData:
		return Result{}, fault.New(fault.Invalid, "TooLate", "the target has the data, and that of the source is being deleted: run the command without --rollback to end the move, then move it back")
	case j.Phase == resuming:
		return Result{}, fault.New(fault.Invalid, "TooLate", "everything is at the target, and the source has nothing any more: run the command without --rollback to end the move, then move it back")
	}
	j.Phase = reverting
	if err := m.saveJournal(ctx, j); err != nil {
		return Result{}, err
	}
	return m.runPhases(ctx, j)
}
