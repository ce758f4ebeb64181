package container

import (
	"cmp"
	"context"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// Every change to an existing resource takes two steps. First, a function of this file looks up the resource and checks
// by its labels, or by the record of a transfer (package hosttransfer), that it belongs to this instance. It returns a
// value of one of the types below, and every call that changes something takes such a value and uses the ID in it. Only
// this file creates these values, so a name that a user writes into a spec or a status never reaches a resource that
// does not belong to the object. Labels and IDs of containers and networks never change. A test checks which files call
// Docker.

// ownContainer is a container that belongs to the object it was looked up for, or to this instance.
type ownContainer struct{ id, name string }

// ownNetwork is a network that belongs to the object it was looked up for, or to this instance.
type ownNetwork struct{ id, name string }

// ownVolume is a volume that belongs to the object it was looked up for, or to this instance. Volumes have no ID.
type ownVolume struct{ name string }

// readRecords returns the records of transfers, which several lookups can share.
type readRecords func() (hosttransfer.Ownership, error)

// owns reports whether an item, whichever instance created it, belongs to this instance.
func (r readRecords) owns(i hosttransfer.Item) (bool, error) {
	owned, err := r()
	return owned.Owns(i), err
}

// container looks up the container of ref. The error is a fault of kind Gone if there is none, and has the reason
// reasonForeign if the container does not belong to the object. Every method of [Engine] for the container of an object
// calls it first.
func (e *Engine) container(ctx context.Context, ref backend.Ref, records readRecords) (ownContainer, container.InspectResponse, error) {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	which := ref.ID
	if which == "" {
		which = ref.Name
	}
	r, err := e.api.ContainerInspect(ctx, which, client.ContainerInspectOptions{})
	if err != nil {
		return ownContainer{}, r.Container, e.fault("reading container "+ref.Name, err)
	}
	name := strings.TrimPrefix(r.Container.Name, "/")
	if r.Container.Config == nil || !ref.Matches(name, r.Container.Config.Labels) {
		return ownContainer{}, r.Container, foreign("Container", name, ref)
	}
	if has, err := records.owns(containerItem(r.Container.ID, name, r.Container.Config.Labels)); err != nil || !has {
		return ownContainer{}, r.Container, cmp.Or(err, foreign("Container", name, ref))
	}
	return ownContainer{id: r.Container.ID, name: name}, r.Container, nil
}

// network looks up the network of a LocalCluster by its labels, and reports false if there is none. Every method of
// [Engine] for the network of a LocalCluster calls it first.
func (e *Engine) network(ctx context.Context, ref backend.Ref, records readRecords) (ownNetwork, network.Summary, bool, error) {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	list, err := e.api.NetworkList(ctx, client.NetworkListOptions{
		Filters: client.Filters{}.Add("label", backend.LabelObject+"="+ref.Object.String()),
	})
	if err != nil {
		return ownNetwork{}, network.Summary{}, false, e.fault("looking for the network of "+ref.Object.String(), err)
	}
	owned, err := records()
	if err != nil {
		return ownNetwork{}, network.Summary{}, false, err
	}
	var found *network.Summary
	for i, n := range list.Items {
		own := n.Labels[backend.LabelInstance] == e.instance // preferred over a network that was transferred in a move
		if ref.Matches(n.Name, n.Labels) && owned.Owns(networkItem(n)) && (ref.ID == "" || ref.ID == n.ID) && (found == nil || own) {
			found = &list.Items[i]
		}
	}
	if found == nil {
		return ownNetwork{}, network.Summary{}, false, nil
	}
	return ownNetwork{id: found.ID, name: found.Name}, *found, true, nil
}

// volume looks up the volume of ref by its name. It returns the same faults as the method container. [Engine.Delete]
// and [Engine.Inspect] call it.
func (e *Engine) volume(ctx context.Context, ref backend.Ref, records readRecords) (ownVolume, error) {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	r, err := e.api.VolumeInspect(ctx, ref.Name, client.VolumeInspectOptions{})
	if err != nil {
		return ownVolume{}, e.fault("reading volume "+ref.Name, err)
	}
	if !ref.Matches(r.Volume.Name, r.Volume.Labels) {
		return ownVolume{}, foreign("Volume", r.Volume.Name, ref)
	}
	if has, err := records.owns(volumeItem(r.Volume)); err != nil || !has {
		return ownVolume{}, cmp.Or(err, foreign("Volume", r.Volume.Name, ref))
	}
	return ownVolume{name: r.Volume.Name}, nil
}

// foreign returns the fault for a resource that does not belong to the object.
func foreign(kind, name string, ref backend.Ref) error {
	return fault.New(fault.Invalid, reasonForeign,
		"%s %s on this host does not belong to %s (label %s), or was transferred to another slipway, so it is left unchanged: use another name, or remove it if it is not needed",
		kind, name, ref.Object, backend.LabelObject)
}

func isForeign(err error) bool {
	f := fault.As(err)
	return f != nil && f.Reason == reasonForeign
}

func isGone(err error) bool { return fault.KindOf(err) == fault.Gone }

// hostResources contains resources of the host.
type hostResources struct {
	containers []container.Summary
	volumes    []volume.Volume
	networks   []network.Summary
}

// listResources lists the resources that match the filters.
func (e *Engine) listResources(ctx context.Context, filters client.Filters) (hostResources, error) {
	volumes, err := e.api.VolumeList(ctx, client.VolumeListOptions{Filters: filters})
	if err != nil {
		return hostResources{}, e.fault("listing volumes", err)
	}
	containers, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		return hostResources{}, e.fault("listing containers", err)
	}
	networks, err := e.api.NetworkList(ctx, client.NetworkListOptions{Filters: filters})
	if err != nil {
		return hostResources{}, e.fault("listing networks", err)
	}
	return hostResources{containers: containers.Items, volumes: volumes.Items, networks: networks.Items}, nil
}

// items identifies the resources. [Engine.ListOwned] returns them, and records of resources that no longer exist are
// pruned by them.
func (r hostResources) items() []hosttransfer.Item {
	var out []hosttransfer.Item
	for _, c := range r.containers {
		out = append(out, itemOf(c))
	}
	for _, n := range r.networks {
		out = append(out, networkItem(n))
	}
	for _, v := range r.volumes {
		out = append(out, volumeItem(v))
	}
	return out
}

// listOwnResources lists the resources that match the filters and belong to this instance. The cleanup (cleanup.go) and
// [Engine.ListOwned] call it.
func (e *Engine) listOwnResources(ctx context.Context, filters client.Filters) (hostResources, error) {
	r, err := e.listResources(ctx, filters)
	if err != nil {
		return r, err
	}
	owned, err := e.ownership.Ownership()
	r.containers = slices.DeleteFunc(r.containers, func(c container.Summary) bool { return !owned.Owns(itemOf(c)) })
	r.volumes = slices.DeleteFunc(r.volumes, func(v volume.Volume) bool { return !owned.Owns(volumeItem(v)) })
	r.networks = slices.DeleteFunc(r.networks, func(n network.Summary) bool { return !owned.Owns(networkItem(n)) })
	return r, err
}

// anyInstanceFilter selects the resources of all instances. The cleanup (cleanup.go) and the pruning of records
// (ownership.go) use it.
func anyInstanceFilter() client.Filters { return client.Filters{}.Add("label", backend.LabelInstance) }

func (e *Engine) startContainer(ctx context.Context, c ownContainer) error {
	_, err := e.api.ContainerStart(ctx, c.id, client.ContainerStartOptions{})
	if cerrdefs.IsNotModified(err) {
		return nil
	}
	return e.fault("starting container "+c.name, err)
}

func (e *Engine) removeContainer(ctx context.Context, c ownContainer) error {
	_, err := e.api.ContainerRemove(ctx, c.id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return e.fault("removing container "+c.name, err)
}

func (e *Engine) removeVolume(ctx context.Context, v ownVolume) error {
	_, err := e.api.VolumeRemove(ctx, v.name, client.VolumeRemoveOptions{})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return e.fault("removing volume "+v.name, err)
}

func (e *Engine) removeNetwork(ctx context.Context, n ownNetwork) error {
	_, err := e.api.NetworkRemove(ctx, n.id, client.NetworkRemoveOptions{})
	switch {
	case err == nil, cerrdefs.IsNotFound(err):
		return nil
	case cerrdefs.IsPermissionDenied(err): // "network has active endpoints"
		return fault.New(fault.Transient, reasonNetworkInUse,
			"containers are still connected to network %s: it is removed once they are gone (docker network inspect %s lists them)", n.name, n.name).From(err)
	}
	return e.fault("removing network "+n.name, err)
}
