package backend

import (
	"context"
	"slices"
	"sync"
	"time"
)

// TurnFor is how long a control plane that does not get ready holds the others up.
const TurnFor = 5 * time.Minute

// Turn says whether the control plane may be restarted now because this build includes another patch version: one control
// plane restarts after the other, so that a build that does not work stops at the first.
type Turn struct {
	// Known is true when it was asked for.
	Known bool
	// Mine is true when it is this control plane's turn.
	Mine bool
}

// Room is how many control planes there are of the backend.
type Room struct {
	// Known is true when they were counted.
	Known bool
	// Own are those of the namespace, All those of all namespaces.
	Own, All int
}

// TakeTurn asks for the control plane's turn to be restarted.
type TakeTurn struct{}

// String returns the question.
func (TakeTurn) String() string { return "take the turn to restart at another patch version" }

// CountControlPlanes asks how many there are.
type CountControlPlanes struct{}

// String returns the question.
func (CountControlPlanes) String() string { return "count the control planes on this host" }

// Turns remembers whose turn it is to restart at another patch version. It is lost when this program ends, and so is nothing: a
// control plane that runs the new version does not ask.
type Turns struct {
	mu     sync.Mutex
	holder string
	since  time.Time
}

// Waiting is a control plane that is to restart, with the versions that this host has.
type Waiting struct {
	Name     string
	Versions []string
	Now      time.Time
}

// Take reports whether it is the turn of the control plane: the one before has to be ready at an included version.
func (t *Turns) Take(ctx context.Context, w Waiting, planes ControlPlanes) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder != "" && t.holder != w.Name && w.Now.Sub(t.since) < TurnFor {
		before, err := planes.Status(ctx, t.holder)
		if err != nil || before.Exists && !(before.Ready && slices.Contains(w.Versions, before.Version)) {
			return false, err
		}
	}
	if t.holder != w.Name {
		t.holder, t.since = w.Name, w.Now
	}
	return true, nil
}
