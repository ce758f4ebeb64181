package clusters

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// memberState is the last state read from the host of a member. A member is a control plane machine whose host can hold
// the virtual IP address of the SSHCluster. decideMembers (virtualip.go) plans the configuration of the host with it.
type memberState struct {
	remote.VirtualIPState
	// At is the time of the reading.
	At time.Time
	// Fault is the error of the connection. Nil: the host was read.
	Fault *fault.Fault
	// Refused is the reason why the last configuration failed, and RefusedAt its time. Nil: it did not fail.
	Refused   *fault.Fault
	RefusedAt time.Time
}

const (
	// steadyInterval is the interval in which the host that holds the virtual IP address is read; others are read three
	// times as often. unsteadyInterval is the interval of the plans while something is about to change.
	steadyInterval, unsteadyInterval = 30 * time.Second, time.Second
	// refusedInterval is the delay before a host that refused its configuration is configured again.
	refusedInterval = 20 * time.Second
	// hostTimeout limits the time for one host, so that hosts that do not respond do not occupy all workers.
	hostTimeout = 20 * time.Second
)

// states remembers the last state of the members of each SSHCluster. They are lost with the process and then read
// again.
type states struct {
	mu   sync.Mutex
	last map[client.ObjectKey]map[string]claimedState
}

// claimedState is the state of a member and the ID of its claim, which reserves the host for one SSHMachine. The
// state is only valid for this claim, because a recreated SSHMachine with the same name can have another host.
type claimedState struct {
	claim string
	memberState
}

func newStates() *states { return &states{last: map[client.ObjectKey]map[string]claimedState{}} }

// get returns the last state of a member if it is current, else nil. observe calls it.
func (s *states) get(cluster client.ObjectKey, m member, now time.Time) *memberState {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.last[cluster][m.Name]
	if !ok || found.claim != m.ClaimID || now.Sub(found.At) >= found.interval() {
		return nil
	}
	return &found.memberState
}

// retain drops the states of machines that are not members any more. observe calls it.
func (s *states) retain(cluster client.ObjectKey, members []member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.last[cluster], func(name string, _ claimedState) bool {
		return !slices.ContainsFunc(members, func(m member) bool { return m.Name == name })
	})
}

// interval returns the time for which a state is current.
func (s memberState) interval() time.Duration {
	if !s.Holds {
		return steadyInterval / 3 // it takes over the address, or responds again, at any time
	}
	return steadyInterval
}

// put stores the state of a member and returns it. If keepalived does not run on the host, the previous refusal remains
// until drop removes it. act and readRequested call it.
func (s *states) put(cluster client.ObjectKey, m member, state memberState) memberState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.last[cluster][m.Name]; last.claim == m.ClaimID && state.Refused == nil && !state.Running {
		state.Refused, state.RefusedAt = last.Refused, last.RefusedAt
	}
	if s.last[cluster] == nil {
		s.last[cluster] = map[string]claimedState{}
	}
	s.last[cluster][m.Name] = claimedState{m.ClaimID, state}
	return state
}

// drop drops the state of a member, which is then read again. act calls it after a configuration.
func (s *states) drop(cluster client.ObjectKey, m member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last[cluster], m.Name)
}

// forget drops the states of an SSHCluster that no longer exists. Package reconciler calls it.
func (s *states) forget(_ context.Context, cluster client.ObjectKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, cluster)
	return nil
}

// connect connects to the host of a member. The message of the error is visible to the users of the SSHCluster, so it
// does not contain the operator's addresses, users and keys ([inventory.NeutralTarget] removes them).
func (c *controller) connect(ctx context.Context, m member) (Host, error) {
	target, err := inventory.Target(ctx, c.secrets, m.Host, c.Policy)
	var host Host
	if err == nil {
		host, err = c.Connector.Connect(ctx, target)
	}
	return host, inventory.NeutralTarget(m.Host, err)
}

// readState reads the state of the host of a member. Errors that are no faults concern the management cluster.
// readRequested calls it.
func (c *controller) readState(ctx context.Context, s snapshot, m member) (memberState, error) {
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	state := memberState{At: c.now()}
	h, err := c.connect(ctx, m)
	if err == nil {
		state.VirtualIPState, err = h.VirtualIPState(ctx, m.ClaimID, s.address())
		err = inventory.Neutral(m.Host, err)
	}
	if state.Fault = fault.As(err); state.Fault != nil {
		err = nil
	}
	return state, err
}
