package managementnode

import (
	"context"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/providers/local/backend/container"
)

// Name is that of the Node, and of the object that network and container belong to by their labels, in [Namespace].
const Name = "management-node"

// Namespace is that of Slipway's own objects.
const Namespace = "slipway-system"

// apiPort is where the API server listens for nodes and Pods, at the address of the host in their network.
const apiPort = 6443

// ReasonImage is the reason of the fault for a host without the node image.
const ReasonImage = "NodeImageMissing"

// Host is what runs the node.
type Host interface {
	backend.Networks
	backend.Machines
	backend.Scripts
	HasImage(ctx context.Context, image string) (bool, error)
}

var _ Host = (*container.Engine)(nil)

// Place is where the node is.
type Place struct {
	Instance string
	Endpoint netip.AddrPort // of the API server
	PodCIDR  netip.Prefix
	// Internet is which name servers Pods use where there is a way out of the host.
	Internet policy.Internet
	// Offline: there is none.
	Offline bool
	network backend.Ref
}

// Image is the node image of this build.
func Image() string { return backend.DefaultImage(buildinfo.Kubernetes(), false) }

// Reserve makes sure that there is a node image, and creates the network of the node where there is none.
func Reserve(ctx context.Context, host Host, instance string, allowed policy.Configuration) (Place, error) {
	found, err := host.HasImage(ctx, Image())
	if err != nil {
		return Place{}, fmt.Errorf("--node needs Docker: %w", err)
	}
	if !found {
		return Place{}, fault.New(fault.Invalid, ReasonImage, "--node needs the node image %s, which is not on this host: make it with \"slipway image build\"", Image())
	}
	ref := network(instance)
	before, err := replaceNetwork(ctx, host, instance, allowed.Management.NodeInternet)
	if err != nil {
		return Place{}, err
	}
	n, err := host.EnsureNetwork(ctx, backend.NetworkSpec{
		Owner: owner(), Name: ref.Name, Subnet: before, Internet: allowed.Management.NodeInternet, Policy: allowed,
	})
	if err != nil {
		return Place{}, fmt.Errorf("create the network of the management cluster's node: %w", err)
	}
	pods, err := podRange(n)
	if err != nil {
		return Place{}, err
	}
	return Place{Instance: instance, Endpoint: netip.AddrPortFrom(n.Gateway, apiPort), PodCIDR: pods, Internet: allowed.Networks.Internet,
		Offline: !allowed.Management.NodeInternet, network: ref}, nil
}

// replaceNetwork deletes the network, and the container in it, where it leads out of the host and should not, or the other
// way round, and returns its range for the next one; invalid: any.
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

// Remove deletes container and network. That there are none is no error.
func Remove(ctx context.Context, host Host, instance string) error {
	if err := host.Delete(ctx, machine(instance)); err != nil {
		return fmt.Errorf("delete the management cluster's node: %w", err)
	}
	if err := host.DeleteNetwork(ctx, network(instance)); err != nil {
		return fmt.Errorf("delete the network of the management cluster's node: %w", err)
	}
	return nil
}

// owner has no Cluster: nothing that removes what is left of Clusters touches it.
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

// podRange is the second /24 of the network: the host reaches Pods there, because the node answers for them.
func podRange(n backend.Network) (netip.Prefix, error) {
	if !n.Gateway.Is4() || !n.Subnet.IsValid() || n.Subnet.Bits() > 20 {
		return netip.Prefix{}, fault.New(fault.Invalid, container.ReasonNoSubnet,
			"network %s has the range %s, which is too small for Pods: remove it (docker network rm %s), and start again", n.Name, n.Subnet, n.Name)
	}
	a := n.Subnet.Masked().Addr().As4()
	a[2]++
	return netip.PrefixFrom(netip.AddrFrom4(a), 24), nil
}
