package managementnode

import (
	"context"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/container"
	"github.com/slipwayhq/slipway/internal/policy"
)

// Name is the name of the Node, and of the object in [Namespace] that the network and the container are labelled with.
// It must not change, because the container of an existing data directory is found by it.
const Name = "management-node"

// Namespace contains Slipway's own objects.
const Namespace = "slipway-system"

// apiPort is the port of the API server for nodes and Pods, on the host's address in their network.
const apiPort = 6443

// reasonImage is the reason of the fault for a host without the node image.
const reasonImage = "NodeImageMissing"

// Host runs the network and the container of the node.
type Host interface {
	backend.Networks
	backend.Machines
	backend.Scripts
	HasImage(ctx context.Context, image string) (bool, error)
}

var _ Host = (*container.Engine)(nil)

// Reservation is the reserved network of the node, with its endpoint and address range. [Reserve] returns it, and
// `slipway up` passes it to [Supervisor] in [Config].
type Reservation struct {
	Instance string
	Endpoint netip.AddrPort // endpoint of the API server
	PodCIDR  netip.Prefix
	// Internet configures the name servers of Pods if the host can reach the internet.
	Internet policy.Internet
	// Offline is true if the network has no access to the internet.
	Offline bool
	network backend.Ref
}

// image returns the node image for the Kubernetes version of this build.
func image() string { return backend.DefaultImage(buildinfo.Kubernetes(), false) }

// Reserve checks that the node image exists on the host, and creates the network of the node if it is missing.
// `slipway up --node` calls it before it starts the API server, which listens in that network.
func Reserve(ctx context.Context, host Host, instance string, allowed policy.Configuration) (Reservation, error) {
	found, err := host.HasImage(ctx, image())
	if err != nil {
		return Reservation{}, fmt.Errorf("--node needs Docker: %w", err)
	}
	if !found {
		return Reservation{}, fault.New(fault.Invalid, reasonImage, "--node needs the node image %s, which is not on this host: build it with \"slipway image build\"", image())
	}
	ref := network(instance)
	before, err := replaceNetwork(ctx, host, instance, allowed.Management.NodeInternet)
	if err != nil {
		return Reservation{}, err
	}
	n, err := host.EnsureNetwork(ctx, backend.NetworkSpec{
		Owner: owner(), Name: ref.Name, Subnet: before, Internet: allowed.Management.NodeInternet, Policy: allowed,
	})
	if err != nil {
		return Reservation{}, fmt.Errorf("create the network of the management cluster's node: %w", err)
	}
	pods, err := podRange(n)
	if err != nil {
		return Reservation{}, err
	}
	return Reservation{Instance: instance, Endpoint: netip.AddrPortFrom(n.Gateway, apiPort), PodCIDR: pods, Internet: allowed.Networks.Internet,
		Offline: !allowed.Management.NodeInternet, network: ref}, nil
}

// replaceNetwork deletes the network and its container if the network's internet access differs from the setting. It
// returns the address range to reuse for the new network; an invalid range means any.
func replaceNetwork(ctx context.Context, host Host, instance string, internet bool) (netip.Prefix, error) {
	n, found, err := host.FindNetwork(ctx, network(instance))
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("find the network of the management cluster's node: %w", err)
	}
	if !found || n.Internet == internet {
		return netip.Prefix{}, nil
	}
	return n.Subnet, Remove(ctx, host, instance)
}

// Remove deletes the container and the network. `slipway up --node=false` calls it. It returns no error if they do not
// exist.
func Remove(ctx context.Context, host Host, instance string) error {
	if err := host.Delete(ctx, machine(instance)); err != nil {
		return fmt.Errorf("delete the management cluster's node: %w", err)
	}
	if err := host.DeleteNetwork(ctx, network(instance)); err != nil {
		return fmt.Errorf("delete the network of the management cluster's node: %w", err)
	}
	return nil
}

// owner sets no Cluster, so that the cleanup of deleted Clusters does not remove the network and the container.
func owner() backend.Owner { return backend.Owner{Object: object()} }

func object() types.NamespacedName {
	return types.NamespacedName{Namespace: Namespace, Name: Name}
}

func network(instance string) backend.Ref {
	return backend.Ref{Object: object(), Name: backend.NetworkName(instance, object())}
}

func machine(instance string) backend.Ref {
	return backend.Ref{Object: object(), Name: backend.MachineName(instance, object())}
}

// podRange returns the second /24 of the network as the range of Pods. The range is part of the node's network, so
// that the host can reach Pods through the node.
func podRange(n backend.Network) (netip.Prefix, error) {
	if !n.Gateway.Is4() || !n.Subnet.IsValid() || n.Subnet.Bits() > 20 {
		return netip.Prefix{}, fault.New(fault.Invalid, container.ReasonNoSubnet,
			"network %s has the range %s, which is too small for Pods: remove it (docker network rm %s), and start again", n.Name, n.Subnet, n.Name)
	}
	a := n.Subnet.Masked().Addr().As4()
	a[2]++
	return netip.PrefixFrom(netip.AddrFrom4(a), 24), nil
}
