package container

import (
	"context"
	"net/netip"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// hostView is one reading of all containers on the host and of the records of transfers. [Engine.CheckQuota] reads it
// for a new machine, and [Engine.Create] uses it again: the quota, the address and the owner of the network follow from
// the same reading.
type hostView struct {
	containers []container.Summary
	ownership  hosttransfer.Ownership
	// creations is the number of containers that this process had created before the reading.
	creations int64
}

// readHost reads the host.
func (e *Engine) readHost(ctx context.Context) (hostView, error) {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	view := hostView{creations: e.creations.Load()}
	list, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return view, e.fault("listing containers", err)
	}
	view.containers = list.Items
	view.ownership, err = e.ownership.Ownership()
	return view, err
}

// currentView returns the listing of an earlier quota check with current records, or reads the host again if this
// process has created a container since then. The caller holds e.allocation. [Engine.Create] calls it.
func (e *Engine) currentView(ctx context.Context, earlier any) (hostView, error) {
	if view, ok := earlier.(hostView); ok && view.creations == e.creations.Load() {
		var err error
		view.ownership, err = e.ownership.Ownership() // a transfer may have started since then
		return view, err
	}
	return e.readHost(ctx)
}

// records returns the records of the reading. [Engine.Create] calls it.
func (v hostView) records() (hosttransfer.Ownership, error) { return v.ownership, nil }

// machines returns the machines of this instance. [Engine.List] and the quota of machines call it.
func (v hostView) machines() []backend.Machine {
	var out []backend.Machine
	for _, c := range v.containers {
		if !v.ownership.Owns(itemOf(c)) {
			continue
		}
		m := machineOf(summaryName(c), c.ID, c.Labels)
		m.State, m.Detail = stateOf(&container.State{Status: c.State})
		out = append(out, m)
	}
	return out
}

// usedAddresses returns the addresses of the containers on a network, including stopped containers. [Engine.Create]
// chooses the address of a node with it.
func (v hostView) usedAddresses(n ownNetwork) map[netip.Addr]bool {
	used := map[netip.Addr]bool{}
	for _, c := range v.containers {
		if c.NetworkSettings == nil || c.NetworkSettings.Networks[n.name] == nil {
			continue
		}
		used[c.NetworkSettings.Networks[n.name].IPAddress] = true
		if a, err := netip.ParseAddr(c.Labels[backend.LabelAddress]); err == nil {
			used[a] = true
		}
	}
	return used
}

// summaryName returns the name of a container, empty if Docker lists none.
func summaryName(c container.Summary) string {
	if len(c.Names) == 0 {
		return ""
	}
	return strings.TrimPrefix(c.Names[0], "/")
}
