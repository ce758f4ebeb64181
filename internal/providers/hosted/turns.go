package hosted

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/slipwayhq/slipway/internal/providers/hosted/backend"
)

// Turn says whether the control plane may be restarted now because this build includes another patch version: one control
// plane restarts after the other, so that a build that does not work stops at the first.
type Turn struct {
	// Known is true when it was asked for.
	Known bool
	// Mine is true when it is this control plane's turn.
	Mine bool
}

// TakeTurn asks for the control plane's turn to be restarted.
type TakeTurn struct{}

// String returns the question.
func (TakeTurn) String() string { return "take the turn to restart at another patch version" }

// Room is how many control planes there are of the backend.
type Room struct {
	// Known is true when they were counted.
	Known bool
	// Own are those of the namespace, All those of all namespaces.
	Own, All int
}

// CountControlPlanes asks how many there are.
type CountControlPlanes struct{}

// String returns the question.
func (CountControlPlanes) String() string { return "count the control planes on this host" }

const (
	// turnAgain is when to ask again for a turn.
	turnAgain = 2 * time.Second
	// turnFor is how long a control plane that does not get ready holds the others up.
	turnFor = 5 * time.Minute
	// roomAgain is when to count again.
	roomAgain = 30 * time.Second
)

// turns remembers whose turn it is. It is lost when this program ends, and so is nothing: who runs the new version does
// not ask.
type turns struct {
	mu     sync.Mutex
	holder string
	since  time.Time
}

// take reports whether it is the turn of the control plane: the one before has to be ready at an included version.
func (t *turns) take(ctx context.Context, s Snapshot, planes backend.ControlPlanes) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := nameOf(s.Plane)
	if t.holder != "" && t.holder != name && s.Now.Sub(t.since) < turnFor {
		before, err := planes.Status(ctx, t.holder)
		if err != nil || before.Exists && !(before.Ready && slices.Contains(s.Terms.Versions, before.Version)) {
			return false, err
		}
	}
	if t.holder != name {
		t.holder, t.since = name, s.Now
	}
	return true, nil
}
