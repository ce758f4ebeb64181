package container

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/providers/local/subnet"
)

// attempts is how often a subnet is chosen anew because Docker says that it is taken: Docker also avoids ranges
// that neither it nor the routing table shows.
const attempts = 8

// EnsureNetwork implements backend.Networks.
func (e *Engine) EnsureNetwork(ctx context.Context, spec backend.NetworkSpec) (backend.Network, error) {
	e.place.Lock()
	defer e.place.Unlock()
	if n, ok, err := e.InspectNetwork(ctx, spec.Name); err != nil || ok {
		return n, err
	}
	if spec.Subnet.IsValid() {
		return e.createNetwork(ctx, spec, spec.Subnet)
	}
	taken, err := e.takenRanges(ctx)
	if err != nil {
		return backend.Network{}, err
	}
	for range attempts {
		chosen, ok := subnet.Choose(taken, spec.Ranges)
		if !ok {
			break
		}
		n, err := e.createNetwork(ctx, spec, chosen)
		if f := fault.As(err); f == nil || f.Reason != ReasonNoSubnet {
			return n, err
		}
		taken = append(taken, chosen)
	}
	return backend.Network{}, fault.New(fault.Invalid, ReasonNoSubnet,
		"no range of 172.16.0.0/12 is free on this host: set spec.backend.container.network.subnet, or remove networks that nobody needs (docker network prune)")
}

func (e *Engine) createNetwork(ctx context.Context, spec backend.NetworkSpec, p netip.Prefix) (backend.Network, error) {
	layout, err := subnet.Plan(p)
	if err != nil {
		return backend.Network{}, fault.New(fault.Invalid, ReasonNoSubnet, "%s", err.Error())
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err = e.api.NetworkCreate(ctx, spec.Name, client.NetworkCreateOptions{
		Driver: "bridge", Internal: true, Labels: e.labels(spec.Owner),
		IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: p, IPRange: layout.Others, Gateway: layout.Gateway}}},
	})
	switch {
	case cerrdefs.IsPermissionDenied(err): // "pool overlaps with other one on this address space"
		return backend.Network{}, fault.New(fault.Invalid, ReasonNoSubnet,
			"the range %s is taken on this host: set another in spec.backend.container.network.subnet", p).From(err)
	case err != nil && !cerrdefs.IsConflict(err):
		return backend.Network{}, e.fault("creating network "+spec.Name, err)
	}
	n, _, err := e.InspectNetwork(ctx, spec.Name)
	return n, err
}

// InspectNetwork implements backend.Networks.
func (e *Engine) InspectNetwork(ctx context.Context, name string) (backend.Network, bool, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := e.api.NetworkInspect(ctx, name, client.NetworkInspectOptions{})
	if cerrdefs.IsNotFound(err) {
		return backend.Network{}, false, nil
	}
	if err != nil {
		return backend.Network{}, false, e.fault("reading network "+name, err)
	}
	n := backend.Network{Name: r.Network.Name, ID: r.Network.ID}
	for _, c := range r.Network.IPAM.Config {
		if c.Subnet.Addr().Is4() {
			n.Subnet, n.Gateway = c.Subnet, c.Gateway
		}
	}
	return n, true, nil
}

// DeleteNetwork implements backend.Networks. It fails while containers are connected.
func (e *Engine) DeleteNetwork(ctx context.Context, name string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := e.api.NetworkRemove(ctx, name, client.NetworkRemoveOptions{})
	switch {
	case err == nil, cerrdefs.IsNotFound(err):
		return nil
	case cerrdefs.IsPermissionDenied(err): // "network has active endpoints"
		return fault.New(fault.Transient, ReasonNetworkInUse,
			"containers are still connected to network %s: it is removed once they are gone (docker network inspect %s lists them)", name, name).From(err)
	}
	return e.fault("removing network "+name, err)
}

// takenRanges returns what the host's routes and Docker's networks use.
func (e *Engine) takenRanges(ctx context.Context) ([]netip.Prefix, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	list, err := e.api.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return nil, e.fault("listing networks", err)
	}
	var out []netip.Prefix
	for _, n := range list.Items {
		for _, c := range n.IPAM.Config {
			if c.Subnet.IsValid() {
				out = append(out, c.Subnet)
			}
		}
	}
	table, err := os.Open(filepath.Join(e.host.proc, "net/route"))
	if err != nil {
		return nil, e.fault("reading the routes of the host", err)
	}
	defer table.Close()
	routes, err := subnet.ParseRoutes(table)
	return append(out, routes...), err
}

func (e *Engine) labels(o backend.Owner) map[string]string {
	return map[string]string{
		backend.LabelInstance: e.instance,
		backend.LabelCluster:  o.Object.Namespace + "/" + o.Cluster,
		backend.LabelObject:   o.Object.String(),
		backend.LabelUID:      string(o.UID),
	}
}
