package backend

import (
	"context"
	"slices"
	"sync"
	"time"
)

// maxTurnDuration limits how long a control plane that does not become ready blocks the restarts of others.
const maxTurnDuration = 5 * time.Minute

// Turn reports whether the control plane may be restarted for another patch version in this build. The
// HostedControlPlane controller takes it before such a restart. Control planes restart one after the other, so that a
// broken build affects only the first.
type Turn struct {
	// Known is true if the turn was checked.
	Known bool
	// Granted is true if this control plane may restart.
	Granted bool
}

// PlaneCount is the number of control planes of the backend, which the controller compares with the limits in the
// configuration before the first start.
type PlaneCount struct {
	// Known is true if they were counted.
	Known bool
	// Own counts the namespace, and All counts all namespaces.
	Own, All int
}

// TakeTurn requests the control plane's turn for a restart. The HostedControlPlane controller plans it before a restart
// at another patch version.
type TakeTurn struct{}

func (TakeTurn) String() string { return "take the turn to restart at another patch version" }

// CountControlPlanes requests the number of control planes. The HostedControlPlane controller requests it before the
// first start, if a limit is set.
type CountControlPlanes struct{}

func (CountControlPlanes) String() string { return "count the control planes on this host" }

// Turns serializes restarts for another patch version. The state is not persisted, because control planes
// that already run the new version do not request a turn.
type Turns struct {
	mu     sync.Mutex
	holder string
	since  time.Time
}

// TurnRequest is a control plane that must restart, with the versions that are available. The HostedControlPlane
// controller fills it in for [Turns.Take].
type TurnRequest struct {
	Name     string
	Versions []string
	Now      time.Time
}

// Take reports whether the control plane may restart. The previous one must be ready at an available version first. The
// HostedControlPlane controller calls it for each [TakeTurn].
func (t *Turns) Take(ctx context.Context, w TurnRequest, planes ControlPlanes) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder != "" && t.holder != w.Name && w.Now.Sub(t.since) < maxTurnDuration {
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
