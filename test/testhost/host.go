package testhost

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/container"
	"github.com/slipwayhq/slipway/internal/policy"
)

// Host is an in-memory host with networks and machines. The zero value is not ready for use; use [New].
type Host struct {
	mu       sync.Mutex
	networks map[string]network
	machines map[string]*Machine
	// balancers by LocalCluster.
	balancers map[types.NamespacedName]*backend.Balancer
	// paths contains the targets of mount paths that are links; refused contains the paths that no node may mount.
	paths      map[string]string
	refused    map[string]string
	usedRanges []backend.UsedRange
	down       error
	fail       map[string]error
	log        []string
}

// network is a network of the host with its labels.
type network struct {
	backend.Network
	owner    backend.Owner
	instance string
}

// Machine is a machine on the host.
type Machine struct {
	backend.Machine
	Spec backend.MachineSpec
	// Instance that created it. Empty: another program did.
	Instance string
	// Network is the name of the network that it is connected to.
	Network string
	// Script is the bootstrap script. Nil: none.
	Script   *backend.Script
	Progress backend.Progress
}

var (
	_ backend.Networks  = (*Host)(nil)
	_ backend.Machines  = (*Host)(nil)
	_ backend.Scripts   = (*Host)(nil)
	_ backend.Balancers = (*Host)(nil)
)

// New returns an empty host.
func New() *Host {
	return &Host{
		networks: map[string]network{}, machines: map[string]*Machine{}, balancers: map[types.NamespacedName]*backend.Balancer{}, fail: map[string]error{},
		paths: map[string]string{}, refused: map[string]string{},
	}
}

// Instance is the instance to which the created machines and networks belong.
const Instance = "i"

// AddMachine adds a machine that was created by other means.
func (h *Host) AddMachine(m Machine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.machines[m.Name] = &m
}

// AddNetwork adds a network that an instance created for an object. An empty instance stands for another program.
func (h *Host) AddNetwork(instance string, owner backend.Owner, n backend.Network) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.networks[n.Name] = network{n, owner, instance}
}

// AddUsedRange adds a range to those that the host uses.
func (h *Host) AddUsedRange(t backend.UsedRange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.usedRanges = append(h.usedRanges, t)
}

// Link makes a path of the host a link to another one.
func (h *Host) Link(path, to string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paths[path] = to
}

// RefuseMount makes a path unavailable for mounts.
func (h *Host) RefuseMount(path, message string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused[path] = message
}

// Machines returns the machines that were created through the backend, by name.
func (h *Host) Machines() map[string]Machine {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]Machine{}
	for name, m := range h.machines {
		if m.Instance == Instance {
			out[name] = *m
		}
	}
	return out
}

// Exists reports whether a container or network of this name exists, regardless of its owner.
func (h *Host) Exists(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, isNetwork := h.networks[name]
	return h.machines[name] != nil || isNetwork
}

// labels returns the labels that a backend sets.
func labels(instance string, o backend.Owner) map[string]string {
	return map[string]string{backend.LabelInstance: instance, backend.LabelObject: o.Object.String()}
}

// machine looks up a machine as a backend does.
func (h *Host) machine(ref backend.Ref) (m *Machine, foreign bool) {
	m = h.machines[ref.Name]
	if m != nil && (m.Instance != Instance || !ref.Matches(m.Name, labels(m.Instance, m.Owner))) {
		return nil, true
	}
	return m, false
}

// networkOf looks up a network as a backend does.
func (h *Host) networkOf(ref backend.Ref) (network, bool) {
	for _, name := range slices.Sorted(maps.Keys(h.networks)) {
		if n := h.networks[name]; n.instance == Instance && ref.Matches(n.Name, labels(n.instance, n.owner)) {
			return n, true
		}
	}
	return network{}, false
}

// Set returns the host as the default backend.
func (h *Host) Set() backend.Set {
	return backend.Set{infrav1.ContainerBackend: {Networks: h, Machines: h, Scripts: h, Balancers: h}}
}

// Capabilities implements backend.Machines.
func (h *Host) Capabilities(r backend.MachineRequest) backend.Capabilities {
	return container.MachineCapabilities(r)
}

// NetworkCapabilities implements backend.Networks.
func (h *Host) NetworkCapabilities(policy.Configuration) backend.NetworkCapabilities {
	return backend.NetworkCapabilities{}
}

// CheckQuota implements backend.Machines.
func (h *Host) CheckQuota(ctx context.Context, spec backend.MachineSpec) (backend.Quota, error) {
	list, err := h.List(ctx)
	if err != nil {
		return backend.Quota{}, err
	}
	return backend.QuotaFor(spec, list, func(hostPath string) (string, error) { return h.ResolveMount(ctx, hostPath) })
}

// SetUnreachable makes every operation return err; nil ends the outage.
func (h *Host) SetUnreachable(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = err
}

// FailOnce makes the next call of an operation, selected by name, do its work and then return err, so that the caller
// does not know whether it took effect.
func (h *Host) FailOnce(verb string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail[verb] = err
}

// Log returns the changes so far: operation and name.
func (h *Host) Log() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.log...)
}

// Change changes a machine. change is called with nil if it does not exist.
func (h *Host) Change(name string, change func(*Machine)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h.machines[name])
}

// RemoveMachine removes a machine, as if a user removed it by hand.
func (h *Host) RemoveMachine(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.machines, name)
}

// do runs an operation under the lock, with the requested failures.
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
		if have, ok := h.networkOf(backend.Ref{Object: spec.Owner.Object, Name: spec.Name}); ok {
			n = have.Network
			return nil
		}
		if _, ok := h.networks[spec.Name]; ok {
			return fault.New(fault.Invalid, "NotOwned", "network %s is another's", spec.Name)
		}
		subnet, why := backend.ChooseRange(spec, h.allUsedRanges(), nil)
		if why != "" {
			return fault.New(fault.Invalid, "SubnetTaken", "%s", why)
		}
		n = backend.Network{Name: spec.Name, ID: "id-" + spec.Name, Subnet: subnet, Gateway: subnet.Addr().Next(), Internet: spec.Internet}
		h.networks[spec.Name] = network{n, spec.Owner, Instance}
		return nil
	})
	return n, err
}

// FindNetwork implements backend.Networks.
func (h *Host) FindNetwork(_ context.Context, ref backend.Ref) (n backend.Network, ok bool, err error) {
	err = h.do("FindNetwork", ref.Name, false, func() error {
		have, found := h.networkOf(ref)
		n, ok = have.Network, found
		return nil
	})
	return n, ok, err
}

// DeleteNetwork implements backend.Networks.
func (h *Host) DeleteNetwork(_ context.Context, ref backend.Ref) error {
	return h.do("DeleteNetwork", ref.Name, true, func() error {
		if n, ok := h.networkOf(ref); ok {
			delete(h.networks, n.Name)
		}
		return nil
	})
}

// UsedRanges implements backend.Networks.
func (h *Host) UsedRanges(context.Context) (out []backend.UsedRange, err error) {
	err = h.do("TakenRanges", "", false, func() error {
		out = h.allUsedRanges()
		return nil
	})
	return out, err
}

func (h *Host) allUsedRanges() []backend.UsedRange {
	out := slices.Clone(h.usedRanges)
	for _, n := range h.networks {
		t := backend.UsedRange{Range: n.Subnet, By: "Docker network " + n.Name}
		if n.instance == Instance {
			t.Owner = n.owner
		}
		out = append(out, t)
	}
	return out
}

// ReserveEndpoint implements backend.Balancers.
func (h *Host) ReserveEndpoint(context.Context, backend.Ref, policy.Configuration) (netip.AddrPort, error) {
	return netip.AddrPort{}, nil
}

// EnsureBalancer implements backend.Balancers. The load balancer runs at once, and none of its members respond.
func (h *Host) EnsureBalancer(_ context.Context, spec backend.BalancerSpec) error {
	return h.do("Balance", spec.Ref.Object.String(), true, func() error {
		h.balancers[spec.Ref.Object] = &backend.Balancer{Running: true, Listen: spec.Listen, Members: slices.Clone(spec.Members)}
		return nil
	})
}

// FindBalancer implements backend.Balancers.
func (h *Host) FindBalancer(_ context.Context, ref backend.Ref) (b backend.Balancer, found bool, err error) {
	err = h.do("FindBalancer", ref.Object.String(), false, func() error {
		if have := h.balancers[ref.Object]; have != nil {
			b, found = *have, true
		}
		return nil
	})
	return b, found, err
}

// DeleteBalancer implements backend.Balancers.
func (h *Host) DeleteBalancer(_ context.Context, ref backend.Ref) error {
	return h.do("DeleteBalancer", ref.Object.String(), true, func() error {
		delete(h.balancers, ref.Object)
		return nil
	})
}

// ChangeBalancer changes the load balancer of a LocalCluster. change is called with nil if it does not exist.
func (h *Host) ChangeBalancer(o types.NamespacedName, change func(*backend.Balancer)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h.balancers[o])
}

// Create implements backend.Machines; addresses count up from 172.16.0.2.
func (h *Host) Create(_ context.Context, spec backend.MachineSpec) ([]string, error) {
	return nil, h.do("Create", spec.Name, true, func() error {
		m, foreign := h.machine(backend.Ref{Object: spec.Owner.Object, Name: spec.Name})
		if foreign {
			return fault.New(fault.Invalid, "NotOwned", "container %s is another's", spec.Name)
		}
		if m == nil || !m.State.Exists() {
			n, ok := h.networkOf(spec.Network)
			if !ok {
				return fault.New(fault.Transient, "NetworkAbsent", "no network of %s", spec.Network.Object)
			}
			m = &Machine{Spec: spec, Instance: Instance, Network: n.Name, Progress: backend.Progress{Phase: backend.NotStarted}, Machine: backend.Machine{
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
func (h *Host) Inspect(_ context.Context, ref backend.Ref) (out backend.Machine, err error) {
	err = h.do("Inspect", ref.Name, false, func() error {
		out = backend.Machine{Name: ref.Name, State: backend.Absent}
		m, foreign := h.machine(ref)
		switch {
		case foreign:
			out.State = backend.Foreign
		case m != nil:
			out = m.Machine
		}
		return nil
	})
	return out, err
}

// Delete implements backend.Machines.
func (h *Host) Delete(_ context.Context, ref backend.Ref) error {
	return h.do("Delete", ref.Name, true, func() error {
		if m, _ := h.machine(ref); m != nil {
			delete(h.machines, m.Name)
		}
		return nil
	})
}

// running returns a machine that is running.
func (h *Host) running(ref backend.Ref) (*Machine, error) {
	m, _ := h.machine(ref)
	if m == nil || m.State != backend.Running {
		return nil, fmt.Errorf("machine %s does not run", ref.Name)
	}
	return m, nil
}

// Bootstrap implements backend.Scripts. The script remains in progress until a test changes it.
func (h *Host) Bootstrap(_ context.Context, ref backend.Ref, script backend.Script) error {
	return h.do("Bootstrap", ref.Name, true, func() error {
		m, err := h.running(ref)
		if err == nil && m.Script == nil {
			m.Script, m.Progress = &script, backend.Progress{Phase: backend.InProgress}
		}
		return err
	})
}

// Progress implements backend.Scripts.
func (h *Host) Progress(_ context.Context, ref backend.Ref) (p backend.Progress, err error) {
	err = h.do("Progress", ref.Name, false, func() error {
		m, err := h.running(ref)
		if err == nil {
			p = m.Progress
		}
		return err
	})
	return p, err
}

// List returns the machines of the instance.
func (h *Host) List(context.Context) (out []backend.Machine, err error) {
	err = h.do("List", "", false, func() error {
		for _, m := range h.machines {
			if m.Instance == Instance {
				out = append(out, m.Machine)
			}
		}
		return nil
	})
	return out, err
}

// ResolveMount returns the target of a mount path.
func (h *Host) ResolveMount(_ context.Context, hostPath string) (out string, err error) {
	err = h.do("ResolveMount", hostPath, false, func() error {
		out = hostPath
		if to, ok := h.paths[hostPath]; ok {
			out = to
		}
		if message, ok := h.refused[out]; ok {
			return fault.New(fault.Invalid, "MountRefused", "%s", message)
		}
		return nil
	})
	return out, err
}
