package backend

import (
	"context"
	"net/netip"

	"github.com/slipwayhq/slipway/internal/policy"
)

// Balancers lead what clients send to the endpoint of a cluster to the machines that run its control plane.
type Balancers interface {
	// Offer returns an endpoint that a cluster without a network can have, always the same. The policy bounds how many there are.
	Offer(ctx context.Context, ref Ref, allowed policy.Configuration) (netip.AddrPort, error)
	// Balance makes the load balancer of a LocalCluster exist and be as the spec says. It does not wait until it serves.
	Balance(ctx context.Context, spec BalancerSpec) error
	// FindBalancer returns the load balancer of a LocalCluster, and false when there is none.
	FindBalancer(ctx context.Context, ref Ref) (Balancer, bool, error)
	// DeleteBalancer ends the load balancer of a LocalCluster. That there is none is no error.
	DeleteBalancer(ctx context.Context, ref Ref) error
}

// BalancerSpec is the load balancer that a LocalCluster needs.
type BalancerSpec struct {
	Ref    Ref
	Listen netip.AddrPort
	// Members are sorted by name.
	Members []Member
}

// Member is a machine that runs the control plane.
type Member struct {
	// Name of its Machine.
	Name    string
	Address netip.AddrPort
	// Leaving members get no new connection.
	Leaving bool
}

// Balancer is a load balancer as it is.
type Balancer struct {
	// Running tells that it serves; Detail says why it does not.
	Running bool
	Detail  string
	Listen  netip.AddrPort
	Members []Member
	// Answering are the members whose API server answers.
	Answering []string
	// Expired is when the certificates of the API servers of members expired, by name.
	Expired map[string]string
}
