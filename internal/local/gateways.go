package local

import (
	"context"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/container"
)

// Gateways looks up the host's address in the networks of LocalClusters, for the HostedControlPlane controller: a
// hosted control plane listens on that address.
type Gateways struct {
	instance string
	networks interface {
		FindNetwork(ctx context.Context, ref backend.Ref) (backend.Network, bool, error)
	}
}

// NewGateways returns the Gateways of the instance. It does not connect to Docker yet. Package manager calls it for the
// HostedControlPlane controller.
func NewGateways(cfg Config) (*Gateways, error) {
	engine, err := container.New(container.Config{Instance: cfg.Instance, Ownership: cfg.ownership(), Address: cfg.Docker})
	if err != nil {
		return nil, fmt.Errorf("local provider: %w", err)
	}
	return &Gateways{instance: cfg.Instance, networks: engine}, nil
}

// Gateway returns the host's address in the network whose labels name the LocalCluster, and false if there is no such
// network. It ignores the addresses in the LocalCluster's spec and status, because their authors could set any address.
// The HostedControlPlane controller calls it before it starts a control plane.
func (g *Gateways) Gateway(ctx context.Context, localCluster types.NamespacedName) (netip.Addr, bool, error) {
	n, found, err := g.networks.FindNetwork(ctx, backend.Ref{Object: localCluster, Name: backend.NetworkName(g.instance, localCluster)})
	return n.Gateway, found && n.Gateway.IsValid(), err
}
