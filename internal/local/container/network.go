package container

import (
	"context"
	"net/netip"
	"slices"
	"strconv"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/subnet"
	"github.com/slipwayhq/slipway/internal/policy"
)

// attempts limits how often another subnet is chosen because Docker reports the previous one as taken. Docker also
// avoids ranges that appear neither in its networks nor in the routing table.
const attempts = 8

// EnsureNetwork implements backend.Networks: it returns the existing network of the LocalCluster, or creates one with a
// range that nothing on the host uses. The LocalCluster controller calls it, and package managementnode for the
// management node.
func (e *Engine) EnsureNetwork(ctx context.Context, spec backend.NetworkSpec) (backend.Network, error) {
	e.allocation.Lock()
	defer e.allocation.Unlock()
	ref := backend.Ref{Object: spec.Owner.Object, Name: spec.Name}
	if n, ok, err := e.FindNetwork(ctx, ref); err != nil || ok {
		return n, err
	}
	if err := e.requireName(ctx, ref); err != nil {
		return backend.Network{}, err
	}
	taken, err := e.UsedRanges(ctx)
	if err != nil {
		return backend.Network{}, err
	}
	if err := checkNetworkQuota(taken, spec); err != nil {
		return backend.Network{}, err
	}
	var refused []netip.Prefix
	for {
		chosen, why := backend.ChooseRange(spec, taken, refused)
		if why != "" {
			return backend.Network{}, fault.New(fault.Invalid, ReasonNoSubnet, "%s", why)
		}
		n, err := e.createNetwork(ctx, spec, chosen)
		if f := fault.As(err); f == nil || f.Reason != ReasonNoSubnet || spec.Subnet.IsValid() || len(refused) == attempts {
			return n, err
		}
		refused = append(refused, chosen)
	}
}

// requireName returns an error if another network has the name. Docker allows duplicate names, but then could not
// select the network of a node.
func (e *Engine) requireName(ctx context.Context, ref backend.Ref) error {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	list, err := e.api.NetworkList(ctx, client.NetworkListOptions{Filters: client.Filters{}.Add("name", ref.Name)})
	if err != nil {
		return e.fault("listing networks", err)
	}
	for _, n := range list.Items { // the filter also matches names that contain it
		if n.Name == ref.Name {
			return foreign("Network", n.Name, ref)
		}
	}
	return nil
}

// checkNetworkQuota returns an error if one more network exceeds the limit.
func checkNetworkQuota(taken []backend.UsedRange, spec backend.NetworkSpec) error {
	namespace := spec.Owner.Object.Namespace
	own, all := backend.CountNetworks(taken, namespace)
	if message := spec.Policy.Maxima.Networks.Exceeded("maxima.networks", namespace, own, all); message != "" {
		return fault.New(fault.Invalid, reasonTooMany, "%s", message)
	}
	return nil
}

func (e *Engine) createNetwork(ctx context.Context, spec backend.NetworkSpec, p netip.Prefix) (backend.Network, error) {
	layout, err := subnet.NewLayout(p)
	if err != nil {
		return backend.Network{}, fault.New(fault.Invalid, ReasonNoSubnet, "%s", err.Error())
	}
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	_, err = e.api.NetworkCreate(ctx, spec.Name, client.NetworkCreateOptions{
		Driver: "bridge", Internal: !spec.Internet, Labels: spec.Owner.Labels(e.instance), // Pods are in the subnet, too
		Options: map[string]string{"com.docker.network.bridge.enable_ip_masquerade": strconv.FormatBool(spec.Internet)},
		IPAM:    &network.IPAM{Config: []network.IPAMConfig{{Subnet: p, IPRange: layout.Others, Gateway: layout.Gateway}}},
	})
	switch {
	case cerrdefs.IsPermissionDenied(err): // "pool overlaps with other one on this address space"
		return backend.Network{}, fault.New(fault.Invalid, ReasonNoSubnet,
			"Range %s is in use on this host according to Docker: create the cluster with another range", p).From(err)
	case err != nil && !cerrdefs.IsConflict(err):
		return backend.Network{}, e.fault("creating network "+spec.Name, err)
	}
	ref := backend.Ref{Object: spec.Owner.Object, Name: spec.Name}
	n, ok, err := e.FindNetwork(ctx, ref)
	if err == nil && !ok { // another network has taken the name in the meantime
		err = foreign("Network", spec.Name, ref)
	}
	return n, err
}

// FindNetwork implements backend.Networks. It finds the network by its labels, and ignores networks that do not belong
// to this instance.
func (e *Engine) FindNetwork(ctx context.Context, ref backend.Ref) (backend.Network, bool, error) {
	_, r, ok, err := e.network(ctx, ref, e.ownership.Ownership)
	if err != nil || !ok {
		return backend.Network{}, false, err
	}
	return networkOf(r), true, nil
}

func networkOf(r network.Summary) backend.Network {
	n := backend.Network{Name: r.Name, ID: r.ID, Internet: !r.Internal}
	for _, c := range r.IPAM.Config {
		if c.Subnet.Addr().Is4() {
			n.Subnet, n.Gateway = c.Subnet, c.Gateway
		}
	}
	return n
}

// DeleteNetwork implements backend.Networks. It returns an error while containers are connected.
func (e *Engine) DeleteNetwork(ctx context.Context, ref backend.Ref) error {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	n, _, ok, err := e.network(ctx, ref, e.ownership.Ownership)
	if err != nil || !ok {
		return err
	}
	return e.removeNetwork(ctx, n)
}

// UsedRanges implements backend.Networks. It returns the ranges of Docker's networks, and the ranges outside of them
// that this host and its operator have to reach ([KernelHost.Ranges]). The LocalCluster controller calls it before it
// plans a network, and EnsureNetwork again under its lock.
func (e *Engine) UsedRanges(ctx context.Context) ([]backend.UsedRange, error) {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	list, err := e.api.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return nil, e.fault("listing networks", err)
	}
	holdings, err := e.ownership.Ownership()
	if err != nil {
		return nil, err
	}
	var out []backend.UsedRange
	for _, n := range list.Items {
		for _, c := range n.IPAM.Config {
			if c.Subnet.IsValid() {
				out = append(out, usedByNetwork(n, c.Subnet, holdings.Owns(networkItem(n))))
			}
		}
	}
	used, err := e.host.Ranges(ctx, append(slices.Clone(e.named), policy.ReachableURL(e.api.DaemonHost(), "the address of Docker")))
	if err != nil {
		return nil, e.fault("reading the routes and addresses of the host", err)
	}
	return append(out, used...), nil
}

// usedByNetwork describes a Docker network; own is set if it belongs to this instance.
func usedByNetwork(n network.Summary, p netip.Prefix, own bool) backend.UsedRange {
	owner := machineOf(n.Name, n.ID, n.Labels).Owner
	if !own || owner.Object.Name == "" {
		return backend.UsedRange{Range: p, By: "Docker network " + n.Name}
	}
	return backend.UsedRange{Range: p, By: "the network of Cluster " + owner.Object.Namespace + "/" + owner.Cluster, Owner: owner}
}
