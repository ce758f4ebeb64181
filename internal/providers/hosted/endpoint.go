package hosted

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/plane/workload"
	"github.com/slipwayhq/slipway/internal/providers/hosted/backend"
)

// Gateways tells the address of this host in the networks of clusters.
type Gateways interface {
	// Gateway is the address of the host in the network of a LocalCluster, read from the host; false: it has no network.
	Gateway(ctx context.Context, localCluster types.NamespacedName) (netip.Addr, bool, error)
}

// Gateway is what was found out of the host's address in the cluster's own network.
type Gateway struct {
	// Address is invalid where there is no such network.
	Address netip.Addr
	// Known is true when it was asked for, Problem why that failed.
	Known   bool
	Problem string
}

// firstPort that a control plane may listen at besides 443: those below are of the host's own services.
const firstPort, httpsPort = 1024, 443

// reasonEndpoint is the reason of a wait for another endpoint.
const reasonEndpoint = "EndpointNotAllowed"

// gatewayAgain is when to look again for the network, of which no watch tells.
const gatewayAgain = 10 * time.Second

// FindGateway asks for the host's address in the cluster's own network.
type FindGateway struct{}

// String returns the question.
func (FindGateway) String() string { return "find the host's address in the cluster's network" }

func (c *Controller) answer(ctx context.Context, s Snapshot, q loop.Question) (Snapshot, error) {
	b, err := c.backendOf(s.Plane)
	if err != nil {
		return s, err
	}
	switch q.(type) {
	case FindGateway:
		s.Gateway = c.readGateway(ctx, s)
	case InspectAddons:
		s.Addons, err = c.inspectAddons(ctx, s)
	case backend.TakeTurn:
		s.Turn.Known = true
		s.Turn.Mine, err = c.turns.Take(ctx, backend.Waiting{Name: nameOf(s.Plane), Versions: s.Terms.Versions, Now: s.Now}, b.ControlPlanes)
	case backend.CountControlPlanes:
		s.Room.Known = true
		s.Room.Own, s.Room.All, err = b.ControlPlanes.Count(ctx, s.Plane.Namespace)
	default:
		err = fault.New(fault.Bug, "UnknownQuestion", "the hosted control plane controller does not know how to %s", q)
	}
	return s, err
}

func (c *Controller) readGateway(ctx context.Context, s Snapshot) Gateway {
	g := Gateway{Known: true}
	ref := s.Cluster.Spec.InfrastructureRef
	if c.gateways == nil || ref.Kind != "LocalCluster" || ref.APIGroup != localv1.GroupVersion.Group {
		return g
	}
	address, found, err := c.gateways.Gateway(ctx, types.NamespacedName{Namespace: s.Cluster.Namespace, Name: ref.Name})
	if err != nil {
		g.Problem = fmt.Sprintf("The network of LocalCluster %s cannot be read from this host, retrying: %s", ref.Name, fault.UserMessage(err))
	}
	if found {
		g.Address = address.Unmap()
	}
	return g
}

// decideEndpoint reports whether the control plane may listen where it is to.
func decideEndpoint(s Snapshot, cfg workload.Config, p *loop.Plan) bool {
	at, err := cfg.Address()
	if err != nil { // the configuration was checked
		return false
	}
	denied := deniedEndpoint(s, at)
	switch {
	case denied == "":
		return true
	case s.Terms.Listens == nil && !s.Gateway.Known:
		p.Ask = append(p.Ask, FindGateway{})
		return false
	case s.Gateway.Problem != "":
		p.WaitFor("NetworkNotKnown", "%s", s.Gateway.Problem).For("LocalCluster", s.Cluster.Spec.InfrastructureRef.Name).ForTime()
	default:
		p.WaitFor(reasonEndpoint, "%s", denied).For(kind, s.Plane.Name).ForPerson()
	}
	p.RecheckIn(gatewayAgain)
	return false
}

// deniedEndpoint returns why the control plane may not listen at the address, empty if it may. Where a process of this
// host listens is for the host to say: the writers of Clusters could name the address of the management cluster, of
// another cluster, or one that the whole company reaches.
func deniedEndpoint(s Snapshot, at netip.AddrPort) string {
	address := at.Addr().Unmap()
	if s.Terms.Listens != nil && s.Terms.Listens.Elsewhere { // no port of this host is its
		return s.Terms.DeniedEndpoint(s.Process, at)
	}
	switch {
	case slices.Contains(s.ReservedPorts, at.Port()):
		return fmt.Sprintf("Control plane endpoint %s is not allowed: port %d is one of the management cluster's own; use another", at, at.Port())
	case s.Terms.Listens != nil:
		return s.Terms.DeniedEndpoint(s.Process, at)
	case address.IsUnspecified() || address.IsMulticast():
		return fmt.Sprintf("Control plane endpoint %s is not allowed: it must be one address of this host", at)
	case s.Policy.AllowsListening(netip.AddrPortFrom(address, at.Port())):
		return ""
	case at.Port() < firstPort && at.Port() != httpsPort || slices.Contains(s.Policy.ControlPlanes.ReservedPorts, int32(at.Port())):
		return fmt.Sprintf("Control plane endpoint %s is not allowed: port %d is reserved; use another, for example 6443", at, at.Port())
	case s.Gateway.Address.IsValid() && address == s.Gateway.Address && !address.IsLoopback():
		return ""
	case s.Gateway.Address.IsValid():
		return fmt.Sprintf("Control plane endpoint %s is not allowed: it must be the host's address in the cluster's network, %s, or the operator allows it in controlPlanes.addresses in the configuration file (--config of slipway up or slipway manager)", at, s.Gateway.Address)
	}
	return fmt.Sprintf("Control plane endpoint %s is not allowed: the cluster has no network on this host, and the operator does not allow the address in controlPlanes.addresses in the configuration file (--config of slipway up or slipway manager)", at)
}
