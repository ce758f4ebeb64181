package local

import (
	"context"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/providers/local/backend/container"
)

// Gateways tells the address of the host in the networks of LocalClusters.
type Gateways struct {
	instance string
	networks interface {
		FindNetwork(ctx context.Context, ref backend.Ref) (backend.Network, bool, error)
	}
}

// NewGateways returns the gateways of this instance's networks. It connects to nothing yet.
func NewGateways(cfg Config) (*Gateways, error) {
	engine, err := container.New(container.Config{Instance: cfg.Instance, Custody: cfg.custody(), Address: cfg.Docker})
	if err != nil {
		return nil, fmt.Errorf("local provider: %w", err)
	}
	return &Gateways{instance: cfg.Instance, networks: engine}, nil
}

// Gateway returns the address of the host in the network that belongs to the LocalCluster by its labels, false if there is
// no such network. What objects say of it is not asked: their writers could name any address.
func (g *Gateways) Gateway(ctx context.Context, localCluster types.NamespacedName) (netip.Addr, bool, error) {
	n, found, err := g.networks.FindNetwork(ctx, backend.Ref{Object: localCluster, Name: backend.NetworkName(g.instance, localCluster)})
	return n.Gateway, found && n.Gateway.IsValid(), err
}
