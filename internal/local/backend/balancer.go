package backend

import (
	"context"
	"net/netip"

	"github.com/slipwayhq/slipway/internal/policy"
)

// Balancers forwards connections to the endpoint of a cluster to the machines that run its control plane. The
// LocalCluster controller calls it; packages container and simulated implement it.
type Balancers interface {
	// ReserveEndpoint returns an endpoint for a cluster without a network, always the same one. The policy limits the
	// number of endpoints.
	ReserveEndpoint(ctx context.Context, ref Ref, allowed policy.Configuration) (netip.AddrPort, error)
	// EnsureBalancer creates or updates the load balancer of a LocalCluster. It does not wait until the load balancer
	// serves.
	EnsureBalancer(ctx context.Context, spec BalancerSpec) error
	// FindBalancer returns the load balancer of a LocalCluster, and false if there is none.
	FindBalancer(ctx context.Context, ref Ref) (Balancer, bool, error)
	// DeleteBalancer stops the load balancer of a LocalCluster. A missing load balancer is not an error.
	DeleteBalancer(ctx context.Context, ref Ref) error
}

// BalancerSpec is the desired load balancer of a LocalCluster. The LocalCluster controller fills it in for [Balancers].
type BalancerSpec struct {
	Ref    Ref
	Listen netip.AddrPort
	// Members are sorted by name.
	Members []BalancerMember
}

// BalancerMember is a machine that runs the control plane. Package container converts it to loadbalancer.Member, so
// both types must have the same fields.
type BalancerMember struct {
	// Name of its Machine.
	Name    string
	Address netip.AddrPort
	// Leaving members get no new connections while another member is healthy.
	Leaving bool
}

// Balancer is the observed state of a load balancer. A backend fills it in, and the LocalCluster controller reports it
// in the condition LoadBalancerReady.
type Balancer struct {
	// Running is set if the load balancer serves; Detail describes why it does not.
	Running bool
	Detail  string
	Listen  netip.AddrPort
	Members []BalancerMember
	// Healthy lists the members whose API server responds.
	Healthy []string
	// Expired contains the expiry times of expired API server certificates, by member name.
	Expired map[string]string
}
