package testhost

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// Host holds networks and machines. The zero value is not ready; use [New].
type Host struct {
	mu       sync.Mutex
	networks map[string]backend.Network
	machines map[string]*Machine
	down     error
	fail     map[string]error
	log      []string
}

// Machine is a machine of the host.
type Machine struct {
	backend.Machine
	Spec backend.MachineSpec
	// Script it was given; nil: none.
	Script   *backend.Script
	Progress backend.Progress
}

var (
	_ backend.Networks = (*Host)(nil)
	_ backend.Machines = (*Host)(nil)
)

// New returns an empty host.
func New() *Host {
	return &Host{networks: map[string]backend.Network{}, machines: map[string]*Machine{}, fail: map[string]error{}}
}

// Down makes every verb fail with err; nil ends that.
func (h *Host) Down(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = err
}

// FailOnce makes the next call of a verb, by its name, do its work and then fail: the caller cannot tell whether it
// happened.
func (h *Host) FailOnce(verb string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail[verb] = err
}

// Log returns the changes so far: verb and name.
func (h *Host) Log() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.log...)
}

// Change changes a machine, nil where there is none.
func (h *Host) Change(name string, change func(*Machine)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h.machines[name])
}

// Lose removes a machine as a user would, by hand.
func (h *Host) Lose(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.machines, name)
}

// do runs a verb under the lock, with the failures asked for.
func (h *Host) do(verb, name string, changes bool, work func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down != nil {
		return h.down
	}
	if changes {
		h.log = append(h.log, verb+" "+name)
	}
	if err := work(); err != nil {
		return err
	}
	if err := h.fail[verb]; err != nil {
		delete(h.fail, verb)
		return err
	}
	return nil
}

// EnsureNetwork implements backend.Networks; a chosen subnet is 172.16.0.0/18.
func (h *Host) EnsureNetwork(_ context.Context, spec backend.NetworkSpec) (n backend.Network, err error) {
	err = h.do("EnsureNetwork", spec.Name, true, func() error {
		if have, ok := h.networks[spec.Name]; ok {
			n = have
			return nil
		}
		subnet := spec.Subnet
		if !subnet.IsValid() {
			subnet = netip.MustParsePrefix("172.16.0.0/18")
		}
		n = backend.Network{Name: spec.Name, ID: "id-" + spec.Name, Subnet: subnet, Gateway: subnet.Addr().Next()}
		h.networks[spec.Name] = n
		return nil
	})
	return n, err
}

// InspectNetwork implements backend.Networks.
func (h *Host) InspectNetwork(_ context.Context, name string) (n backend.Network, ok bool, err error) {
	err = h.do("InspectNetwork", name, false, func() error { n, ok = h.networks[name]; return nil })
	return n, ok, err
}

// DeleteNetwork implements backend.Networks.
func (h *Host) DeleteNetwork(_ context.Context, name string) error {
	return h.do("DeleteNetwork", name, true, func() error { delete(h.networks, name); return nil })
}

// Create implements backend.Machines; addresses count up from 172.16.0.2.
func (h *Host) Create(_ context.Context, spec backend.MachineSpec) ([]string, error) {
	return nil, h.do("Create", spec.Name, true, func() error {
		m := h.machines[spec.Name]
		if m == nil || !m.State.Exists() {
			m = &Machine{Spec: spec, Progress: backend.Progress{Phase: backend.NotStarted}, Machine: backend.Machine{
				Name: spec.Name, ID: "id-" + spec.Name, Owner: spec.Owner, Hostname: spec.Hostname, NodeVersion: "v1.36.3",
				Address: netip.MustParseAddr(fmt.Sprintf("172.16.0.%d", len(h.machines)+2)),
			}}
			h.machines[spec.Name] = m
		}
		m.State = backend.Running
		return nil
	})
}

// Inspect implements backend.Machines.
func (h *Host) Inspect(_ context.Context, name string) (out backend.Machine, err error) {
	err = h.do("Inspect", name, false, func() error {
		out = backend.Machine{Name: name, State: backend.Absent}
		if m := h.machines[name]; m != nil {
			out = m.Machine
		}
		return nil
	})
	return out, err
}

// Delete implements backend.Machines.
func (h *Host) Delete(_ context.Context, name string) error {
	return h.do("Delete", name, true, func() error { delete(h.machines, name); return nil })
}

// Bootstrap implements backend.Machines; the script stays in progress until a test changes it.
func (h *Host) Bootstrap(_ context.Context, name string, script backend.Script) error {
	return h.do("Bootstrap", name, true, func() error {
		m := h.machines[name]
		if m == nil || m.State != backend.Running {
			return fmt.Errorf("machine %s does not run", name)
		}
		if m.Script == nil {
			m.Script, m.Progress = &script, backend.Progress{Phase: backend.InProgress}
		}
		return nil
	})
}

// Progress implements backend.Machines.
func (h *Host) Progress(_ context.Context, name string) (p backend.Progress, err error) {
	err = h.do("Progress", name, false, func() error {
		m := h.machines[name]
		if m == nil || m.State != backend.Running {
			return fmt.Errorf("machine %s does not run", name)
		}
		p = m.Progress
		return nil
	})
	return p, err
}

// List implements backend.Machines.
func (h *Host) List(context.Context) (out []backend.Machine, err error) {
	err = h.do("List", "", false, func() error {
		for _, m := range h.machines {
			out = append(out, m.Machine)
		}
		return nil
	})
	return out, err
}
