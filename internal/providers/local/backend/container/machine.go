package container

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/providers/local/subnet"
)

// Create implements backend.Machines. A container that exists is started if it does not run; everything about it was
// fixed when it was made.
func (e *Engine) Create(ctx context.Context, spec backend.MachineSpec) ([]string, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	notes := e.host.raiseLimits()
	m, err := e.Inspect(ctx, spec.Name)
	if err != nil {
		return notes, err
	}
	if m.State == backend.Running || m.State == backend.Removing {
		return notes, nil
	}
	if m.State.Exists() {
		return notes, e.start(ctx, spec.Name)
	}
	if err := e.requireImage(ctx, spec.Image); err != nil {
		return notes, err
	}
	return notes, e.createAndStart(ctx, spec)
}

// createAndStart tries a privileged container first, unless it is known that the host refuses them.
func (e *Engine) createAndStart(ctx context.Context, spec backend.MachineSpec) error {
	without, err := e.host.missingCapabilities()
	if err != nil {
		return err
	}
	tried := profile{Privileged: len(without) == 0 && !e.restricted.get(), Without: without}
	err = e.attempt(ctx, spec, tried)
	if err == nil || !tried.Privileged || fault.KindOf(err) != fault.Transient {
		return err
	}
	// What a host refuses cannot be told from the error, so the smaller request is simply tried.
	if again := e.attempt(ctx, spec, profile{Without: []string{"SYS_RESOURCE"}}); again != nil {
		return err
	}
	e.restricted.raise()
	return nil
}

// attempt makes and starts a container; one that does not start is removed, so that the next attempt may differ.
func (e *Engine) attempt(ctx context.Context, spec backend.MachineSpec, p profile) error {
	if err := e.make(ctx, spec, p); err != nil {
		return err
	}
	if err := e.start(ctx, spec.Name); err != nil {
		if gone := e.Delete(ctx, spec.Name); gone != nil {
			return fmt.Errorf("%w; then: %w", err, gone)
		}
		return err
	}
	return nil
}

// make creates the container with an address that no other node of the network has. Addresses are ours to give,
// because Docker's own choice may change when the container is restarted, and a Node must keep its address.
func (e *Engine) make(ctx context.Context, spec backend.MachineSpec, p profile) error {
	e.place.Lock()
	defer e.place.Unlock()
	address, err := e.freeAddress(ctx, spec.Network)
	if err != nil {
		return err
	}
	labels := e.labels(spec.Owner)
	labels[backend.LabelAddress] = address.String()
	if err := e.deleteVolume(ctx, spec.Name); err != nil { // of a container that somebody removed by hand
		return err
	}
	r := request{Spec: spec, Labels: labels, Address: address, Profile: p, Modules: exists(modulesFolder), KernelLog: exists(kernelLog)}
	_, err = e.api.ContainerCreate(ctx, r.options())
	if cerrdefs.IsConflict(err) { // the name is taken: an earlier attempt came this far
		return nil
	}
	return e.fault("creating container "+spec.Name, err)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (e *Engine) freeAddress(ctx context.Context, name string) (netip.Addr, error) {
	n, ok, err := e.InspectNetwork(ctx, name)
	if err != nil {
		return netip.Addr{}, err
	}
	if !ok {
		return netip.Addr{}, fault.New(fault.Transient, ReasonNetworkAbsent,
			"the cluster's network %s is gone; it is made again as soon as its LocalCluster is reconciled", name)
	}
	layout, err := subnet.Plan(n.Subnet)
	if err != nil {
		return netip.Addr{}, fault.New(fault.Invalid, ReasonNoAddress, "network %s: %s", name, err.Error())
	}
	used, err := e.usedAddresses(ctx, name)
	if err != nil {
		return netip.Addr{}, err
	}
	address, ok := layout.NodeAddress(used)
	if !ok {
		return netip.Addr{}, fault.New(fault.Invalid, ReasonNoAddress,
			"all %d addresses for nodes in %s are in use: delete machines, or use a second cluster", len(used), layout.Nodes)
	}
	return address, nil
}

// usedAddresses returns the addresses of the containers on a network, those that do not run included.
func (e *Engine) usedAddresses(ctx context.Context, name string) (map[netip.Addr]bool, error) {
	list, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("network", name)})
	if err != nil {
		return nil, e.fault("listing the containers of network "+name, err)
	}
	used := map[netip.Addr]bool{}
	for _, c := range list.Items {
		if a, err := netip.ParseAddr(c.Labels[backend.LabelAddress]); err == nil {
			used[a] = true
		}
		if c.NetworkSettings != nil && c.NetworkSettings.Networks[name] != nil {
			used[c.NetworkSettings.Networks[name].IPAddress] = true
		}
	}
	return used, nil
}

func (e *Engine) start(ctx context.Context, name string) error {
	_, err := e.api.ContainerStart(ctx, name, client.ContainerStartOptions{})
	if cerrdefs.IsNotModified(err) {
		return nil
	}
	return e.fault("starting container "+name, err)
}

func (e *Engine) requireImage(ctx context.Context, image string) error {
	_, err := e.api.ImageInspect(ctx, image)
	if cerrdefs.IsNotFound(err) {
		return fault.New(fault.Invalid, ReasonImageAbsent,
			"the node image %s is not on this host: make it with `slipway image build`, or name one that is there in spec.backend.container.image; "+
				"work continues by itself once it is there", image).From(err)
	}
	return e.fault("looking for image "+image, err)
}

// Delete implements backend.Machines. It fails with a Conflict while Docker is still busy removing the container.
func (e *Engine) Delete(ctx context.Context, name string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := e.api.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !cerrdefs.IsNotFound(err) {
		return e.fault("removing container "+name, err)
	}
	return e.deleteVolume(ctx, name)
}

func (e *Engine) deleteVolume(ctx context.Context, name string) error {
	_, err := e.api.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return e.fault("removing volume "+name, err)
}

// Inspect implements backend.Machines.
func (e *Engine) Inspect(ctx context.Context, name string) (backend.Machine, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := e.api.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if cerrdefs.IsNotFound(err) {
		return e.inspectRemains(ctx, name)
	}
	if err != nil {
		return backend.Machine{}, e.fault("reading container "+name, err)
	}
	m := machineOf(name, r.Container.ID, r.Container.Config.Labels)
	m.Hostname = r.Container.Config.Hostname
	m.State, m.Detail = stateOf(r.Container.State)
	return m, nil
}

// inspectRemains looks for the volume of a container that does not exist.
func (e *Engine) inspectRemains(ctx context.Context, name string) (backend.Machine, error) {
	m := backend.Machine{Name: name, State: backend.Remains}
	_, err := e.api.VolumeInspect(ctx, name, client.VolumeInspectOptions{})
	if cerrdefs.IsNotFound(err) {
		m.State, err = backend.Absent, nil
	}
	return m, e.fault("reading volume "+name, err)
}

// List implements backend.Machines.
func (e *Engine) List(ctx context.Context) ([]backend.Machine, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	list, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: e.mine()})
	if err != nil {
		return nil, e.fault("listing containers", err)
	}
	var out []backend.Machine
	for _, c := range list.Items {
		m := machineOf(strings.TrimPrefix(c.Names[0], "/"), c.ID, c.Labels)
		m.State, m.Detail = stateOf(&container.State{Status: c.State})
		out = append(out, m)
	}
	return out, nil
}

func (e *Engine) mine() client.Filters {
	return client.Filters{}.Add("label", backend.LabelInstance+"="+e.instance)
}

func machineOf(name, id string, labels map[string]string) backend.Machine {
	address, _ := netip.ParseAddr(labels[backend.LabelAddress])
	namespace, object := split(labels[backend.LabelObject])
	_, cluster := split(labels[backend.LabelCluster])
	return backend.Machine{
		Name: name, ID: id, Address: address, NodeVersion: labels[backend.LabelVersion],
		Owner: backend.Owner{
			Cluster: cluster, UID: types.UID(labels[backend.LabelUID]),
			Object: types.NamespacedName{Namespace: namespace, Name: object},
		},
	}
}

func split(s string) (namespace, name string) {
	namespace, name, _ = strings.Cut(s, "/")
	return namespace, name
}

// stateOf translates Docker's state of a container.
func stateOf(s *container.State) (backend.State, string) {
	switch s.Status {
	case container.StateCreated:
		return backend.Created, ""
	case container.StateRunning:
		return backend.Running, ""
	case container.StateRemoving, container.StateDead:
		return backend.Removing, ""
	case container.StatePaused:
		return backend.Stopped, "it is paused: docker unpause resumes it"
	}
	detail := fmt.Sprintf("it ended with exit code %d", s.ExitCode)
	if s.OOMKilled {
		detail += ", out of memory"
	}
	if s.Error != "" {
		detail += ": " + s.Error
	}
	return backend.Stopped, detail
}
