package clusters

import (
	"context"
	"fmt"
	"net/netip"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// setEndpoint writes the virtual IP address as the control plane endpoint. decide plans the actions in this file, and
// act runs them.
type setEndpoint struct{ Address string }

func (a setEndpoint) String() string {
	return fmt.Sprintf("set spec.controlPlaneEndpoint to %s: a control plane host will hold this address", a.Address)
}

// configure writes the configuration of a member.
type configure struct {
	Machine, Why string
	// Unused and Silent are the conditions for a host that starts ([remote.VirtualIPConditions]).
	Unused bool
	Silent []netip.Addr
}

func (a configure) String() string {
	return fmt.Sprintf("configure the virtual IP address on the host of SSHMachine %s: %s", a.Machine, a.Why)
}

// readMember reads the state of a member.
type readMember struct{ Machine string }

func (a readMember) String() string {
	return "the state of the virtual IP address on the host of SSHMachine " + a.Machine
}

// act runs an action of the plan. The driver (package reconciler) calls it.
func (c *controller) act(ctx context.Context, s snapshot, a reconciler.Action) error {
	switch a := a.(type) {
	case setEndpoint:
		return c.writer.Patch(ctx, s.Object, func(o client.Object) {
			o.(*infrav1.SSHCluster).Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: a.Address, Port: infrav1.SSHVirtualIPPort}
		})
	case configure:
		if m := s.member(a.Machine); m != nil {
			return c.configure(ctx, s, *m, a)
		}
	}
	return reconciler.UnknownAction("SSH cluster", a)
}

// configure writes the configuration of a member. A refusal of the host is remembered, so that the next plan waits. A running
// host that refuses runs on with its previous configuration, so its state stays as it was read.
func (c *controller) configure(ctx context.Context, s snapshot, m member, a configure) error {
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	key := client.ObjectKeyFromObject(s.Object)
	h, err := c.connect(ctx, m)
	if err == nil {
		err = inventory.Neutral(m.Host, h.ConfigureVirtualIP(ctx, s.configuration(m), remote.VirtualIPConditions{Unused: a.Unused, Silent: a.Silent}))
	}
	if f := fault.As(err); f != nil && f.Kind == fault.Invalid {
		state := memberState{At: c.now(), Refused: f, RefusedAt: c.now()}
		if m.State != nil {
			state.VirtualIPState = m.State.VirtualIPState
		}
		c.states.put(key, m, state)
		return nil
	}
	c.states.drop(key, m)
	return err
}

// readRequested reads the state of a member. The driver calls it for a read that decide requests, and then decide
// again.
func (c *controller) readRequested(ctx context.Context, s snapshot, q reconciler.ReadRequest) (snapshot, error) {
	read, ok := q.(readMember)
	m := s.member(read.Machine)
	if !ok || m == nil {
		return s, reconciler.UnknownRead("SSH cluster", q)
	}
	state, err := c.readState(ctx, s, *m)
	if err != nil {
		return s, err
	}
	state = c.states.put(client.ObjectKeyFromObject(s.Object), *m, state)
	m.State = &state
	return s, nil
}
