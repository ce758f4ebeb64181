package container

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/subnet"
	"github.com/slipwayhq/slipway/internal/version"
)

// Create implements backend.Machines. The LocalMachine controller calls it to create or to start the container of a
// machine. An existing container is started if it does not run. Its configuration was fixed when it was created.
func (e *Engine) Create(ctx context.Context, spec backend.MachineSpec) ([]string, error) {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	notes := e.host.RaiseLimits()
	c, r, err := e.container(ctx, refOf(spec), e.ownership.Ownership)
	if err == nil {
		if state, _ := stateOf(r.State); state == backend.Running || state == backend.Removing {
			return notes, nil
		}
		return notes, e.startContainer(ctx, c)
	}
	if !isGone(err) {
		return notes, err
	}
	if err := e.requireImage(ctx, spec.Image); err != nil {
		return notes, err
	}
	return notes, e.createAndStart(ctx, spec)
}

// refOf returns the reference to the container of a spec.
func refOf(spec backend.MachineSpec) backend.Ref {
	return backend.Ref{Object: spec.Owner.Object, Name: spec.Name}
}

// createAndStart tries a privileged container first, unless the host is known to refuse privileged containers.
func (e *Engine) createAndStart(ctx context.Context, spec backend.MachineSpec) error {
	without, err := e.host.MissingCapabilities()
	if err != nil {
		return err
	}
	tried := profile{Privileged: len(without) == 0 && !e.restricted.Load(), Without: without}
	err = e.tryProfile(ctx, spec, tried)
	if err == nil || !tried.Privileged || fault.KindOf(err) != fault.Transient {
		return err
	}
	// The error does not reveal what the host refuses, so try a container with fewer privileges.
	if again := e.tryProfile(ctx, spec, profile{Without: []string{"SYS_RESOURCE"}}); again != nil {
		return err
	}
	e.restricted.Store(true)
	return nil
}

// tryProfile creates and starts a container. A container that does not start, or whose mounts lead elsewhere than
// allowed, is removed so that the next attempt can use other options.
func (e *Engine) tryProfile(ctx context.Context, spec backend.MachineSpec, p profile) error {
	c, err := e.createContainer(ctx, spec, p)
	if err != nil {
		return err
	}
	err = e.startContainer(ctx, c)
	if err == nil {
		err = e.recheckMounts(ctx, spec.Mounts)
	}
	if err == nil {
		return nil
	}
	if gone := e.Delete(ctx, backend.Ref{Object: spec.Owner.Object, Name: c.name, ID: c.id}); gone != nil {
		return fmt.Errorf("%w; then: %w", err, gone)
	}
	return err
}

// createContainer creates the container with an address that no other node of the network has. The address is assigned
// here because Docker's own choice can change when the container is restarted, and a Node must retain its address.
func (e *Engine) createContainer(ctx context.Context, spec backend.MachineSpec, p profile) (ownContainer, error) {
	e.allocation.Lock()
	defer e.allocation.Unlock()
	view, err := e.currentView(ctx, spec.HostView)
	if err != nil {
		return ownContainer{}, err
	}
	if err := checkMachineQuota(view, spec); err != nil {
		return ownContainer{}, err
	}
	if err := e.recheckMounts(ctx, spec.Mounts); err != nil {
		return ownContainer{}, err
	}
	n, found, err := e.requireNetwork(ctx, spec.Network, view.records)
	if err != nil {
		return ownContainer{}, err
	}
	layout, address, err := freeAddress(view, n, found)
	if err != nil {
		return ownContainer{}, err
	}
	labels := spec.Owner.Labels(e.instance)
	labels[backend.LabelAddress] = address.String()
	if spec.ControlPlane {
		labels[backend.LabelControlPlane] = "true"
	}
	if err := e.deleteVolume(ctx, refOf(spec), view.records); err != nil { // left by a container that was removed by hand
		return ownContainer{}, err
	}
	servers, err := e.host.NameServers(!found.Internal, spec.Policy.Networks.Internet.NameServers)
	if err != nil {
		return ownContainer{}, err
	}
	r := containerInput{
		NameServers: servers, Spec: spec, Labels: labels, Network: n.name, Address: address, Routes: layout.Outside(spec.Ranges), Profile: p,
		Offline: found.Internal, Modules: exists(modulesFolder), KernelLog: exists(kernelLog),
	}
	made, err := e.api.ContainerCreate(ctx, r.options())
	e.creations.Add(1)
	if cerrdefs.IsConflict(err) { // the name is in use: an earlier attempt got this far
		c, _, err := e.container(ctx, refOf(spec), view.records)
		return c, err
	}
	return ownContainer{id: made.ID, name: spec.Name}, e.fault("creating container "+spec.Name, err)
}

// checkMachineQuota returns an error if one more machine exceeds the limit. The caller holds e.allocation, so no
// machine can be created in between.
func checkMachineQuota(view hostView, spec backend.MachineSpec) error {
	own, all := backend.CountMachines(view.machines(), spec.Owner.Object.Namespace)
	if message := spec.Maximum.Exceeded("maxima.nodes", spec.Owner.Object.Namespace, own, all); message != "" {
		return fault.New(fault.Invalid, reasonTooMany, "%s", message)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// requireNetwork finds the network of a new machine by its labels.
func (e *Engine) requireNetwork(ctx context.Context, ref backend.Ref, records readRecords) (ownNetwork, network.Summary, error) {
	n, r, ok, err := e.network(ctx, ref, records)
	if err == nil && !ok {
		err = fault.New(fault.Transient, reasonNetworkAbsent,
			"LocalCluster %s has no network on this host: retrying until its controller has created it", ref.Object)
	}
	return n, r, err
}

func freeAddress(view hostView, n ownNetwork, r network.Summary) (subnet.Layout, netip.Addr, error) {
	layout, err := subnet.NewLayout(networkOf(r).Subnet)
	if err != nil {
		return layout, netip.Addr{}, fault.New(fault.Invalid, reasonNoAddress, "network %s: %s", n.name, err.Error())
	}
	used := view.usedAddresses(n)
	address, ok := layout.NodeAddress(used)
	if !ok {
		return layout, netip.Addr{}, fault.New(fault.Invalid, reasonNoAddress,
			"all addresses for nodes in %s are in use: delete machines, or use a second cluster", layout.Nodes)
	}
	return layout, address, nil
}

func (e *Engine) requireImage(ctx context.Context, image string) error {
	_, err := e.api.ImageInspect(ctx, image)
	if cerrdefs.IsNotFound(err) {
		return fault.New(fault.Invalid, reasonImageAbsent,
			"the node image %s is not on this host: build it with `slipway image build%s`, or set spec.backend.container.image to an existing image; "+
				"work continues automatically once the image exists", image, buildFlags(image)).From(err)
	}
	return e.fault("looking for image "+image, err)
}

// buildFlags returns the flags with which `slipway image build` builds the image, and nothing for an image that it does
// not build.
func buildFlags(image string) string {
	for repository, flags := range map[string]string{"/node:": "", "/node-control-plane:": " --control-plane"} {
		if v, ok := strings.CutPrefix(image, backend.ImageRepository+repository); ok && version.Valid(v) {
			return " --kubernetes-version " + v + flags
		}
	}
	return ""
}

// Delete implements backend.Machines. It returns a Conflict while Docker is still removing the container. A container
// of that name that does not belong to the object is left unchanged.
func (e *Engine) Delete(ctx context.Context, ref backend.Ref) error {
	records := sync.OnceValues(e.ownership.Ownership)
	c, r, err := e.container(ctx, ref, records)
	if err == nil {
		e.drainAPIServer(ctx, c, r)
	}
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	switch {
	case err == nil:
		if err := e.removeContainer(ctx, c); err != nil {
			return err
		}
	case !isGone(err):
		return err
	}
	return e.deleteVolume(ctx, ref, records)
}

// shutdownScript stops the API server of a control plane node gracefully, within five seconds: it finishes the requests
// in progress and makes its clients reconnect, which leads them to other API servers.
const shutdownScript = `manifest=/etc/kubernetes/manifests/kube-apiserver.yaml
[ -e $manifest ] || exit 0
rm -f $manifest
pkill -TERM -x kube-apiserver || exit 0
tries=0; while pgrep -x kube-apiserver >/dev/null && [ $tries -lt 50 ]; do tries=$((tries+1)); sleep 0.1; done`

// shutdownTimeout limits the graceful stop. Users control the programs in the node, so they may never exit.
const shutdownTimeout = 8 * time.Second

// drainAPIServer stops the API server of a node that is about to be removed. The node is removed regardless of the
// result.
func (e *Engine) drainAPIServer(ctx context.Context, c ownContainer, r container.InspectResponse) {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	if state, _ := stateOf(r.State); state == backend.Running && r.Config.Labels[backend.LabelControlPlane] != "" {
		_, _ = e.exec(ctx, c, shutdownScript, nil)
	}
}

func (e *Engine) deleteVolume(ctx context.Context, ref backend.Ref, records readRecords) error {
	v, err := e.volume(ctx, ref, records)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.removeVolume(ctx, v)
}

// Inspect implements backend.Machines. The LocalMachine controller calls it in each reconciliation, and the
// LocalCluster controller for the members of a load balancer.
func (e *Engine) Inspect(ctx context.Context, ref backend.Ref) (backend.Machine, error) {
	c, r, err := e.container(ctx, ref, e.ownership.Ownership)
	switch {
	case isGone(err):
		return e.inspectOrphaned(ctx, ref)
	case isForeign(err):
		return backend.Machine{Name: ref.Name, State: backend.Foreign}, nil
	case err != nil:
		return backend.Machine{}, err
	}
	m := machineOf(c.name, c.id, r.Config.Labels)
	m.Hostname = r.Config.Hostname
	m.State, m.Detail = stateOf(r.State)
	return m, nil
}

// inspectOrphaned looks for the volume of a container that does not exist.
func (e *Engine) inspectOrphaned(ctx context.Context, ref backend.Ref) (backend.Machine, error) {
	m := backend.Machine{Name: ref.Name, State: backend.Orphaned}
	_, err := e.volume(ctx, ref, e.ownership.Ownership)
	switch {
	case isGone(err):
		m.State, err = backend.Absent, nil
	case isForeign(err):
		m.State, err = backend.Foreign, nil
	}
	return m, err
}

// List returns all machines of this instance. Commands for nodes call it, such as `slipway logs node`.
func (e *Engine) List(ctx context.Context) ([]backend.Machine, error) {
	view, err := e.readHost(ctx)
	if err != nil {
		return nil, err
	}
	return view.machines(), nil
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

// stateOf converts Docker's state of a container to a machine state and its detail.
func stateOf(s *container.State) (backend.MachineState, string) {
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
