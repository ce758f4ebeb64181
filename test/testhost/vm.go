package testhost

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/local/backend"
)

// VMHost runs virtual machines in memory.
type VMHost struct {
	// BootDuration is the duration of a machine's start.
	BootDuration time.Duration
	// Now is the clock.
	Now func() time.Time
	// Machines that exist.
	Machines map[types.NamespacedName]*VMMachine
}

// VMMachine is a virtual machine.
type VMMachine struct {
	Spec      backend.MachineSpec
	StartedAt time.Time
	Phase     backend.Phase
	// Scripts counts the scripts that were run in it.
	Scripts int
}

// Backend returns the host as a backend.
func (h *VMHost) Backend() backend.Backend { return backend.Backend{Machines: h, Scripts: h} }

// Capabilities implements backend.Machines.
func (h *VMHost) Capabilities(r backend.MachineRequest) backend.Capabilities {
	return backend.Capabilities{Immediate: true, Scripted: true, Startup: h.BootDuration, Timeout: time.Minute, MaximumSetting: "maxima.nodes", Maximum: r.Policy.Maxima.Nodes}
}

// CheckQuota implements backend.Machines.
func (h *VMHost) CheckQuota(context.Context, backend.MachineSpec) (backend.Quota, error) {
	return backend.Quota{All: len(h.Machines)}, nil
}

// Create implements backend.Machines.
func (h *VMHost) Create(_ context.Context, spec backend.MachineSpec) ([]string, error) {
	if h.Machines[spec.Owner.Object] == nil {
		h.Machines[spec.Owner.Object] = &VMMachine{Spec: spec, StartedAt: h.Now(), Phase: backend.NotStarted}
	}
	return nil, nil
}

// Inspect implements backend.Machines.
func (h *VMHost) Inspect(_ context.Context, ref backend.Ref) (backend.Machine, error) {
	m := h.Machines[ref.Object]
	if m == nil {
		return backend.Machine{Name: ref.Name, State: backend.Absent}, nil
	}
	out := backend.Machine{Name: ref.Name, ID: "vm-" + ref.Name, Owner: m.Spec.Owner, State: backend.Created, Hostname: m.Spec.Hostname, Since: m.StartedAt}
	if started := m.StartedAt.Add(h.BootDuration); !h.Now().Before(started) {
		out.State, out.Since = backend.Running, started
	}
	return out, nil
}

// Delete implements backend.Machines.
func (h *VMHost) Delete(_ context.Context, ref backend.Ref) error {
	delete(h.Machines, ref.Object)
	return nil
}

// Bootstrap implements backend.Scripts.
func (h *VMHost) Bootstrap(_ context.Context, ref backend.Ref, _ backend.Script) error {
	m := h.Machines[ref.Object]
	m.Scripts++
	m.Phase = backend.InProgress
	return nil
}

// Progress implements backend.Scripts.
func (h *VMHost) Progress(_ context.Context, ref backend.Ref) (backend.Progress, error) {
	return backend.Progress{Phase: h.Machines[ref.Object].Phase}, nil
}
