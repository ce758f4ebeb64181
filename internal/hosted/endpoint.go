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
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// Gateways finds the addresses of this host in the networks of clusters. The local provider implements it. This file
// decides at which addresses of the host a control plane may listen ([planEndpoint]), which is a security rule: users
// choose the endpoint of a Cluster.
type Gateways interface {
	// Gateway reads the address of the host in the network of a LocalCluster. It returns false if there is no
	// such network.
	Gateway(ctx context.Context, localCluster types.NamespacedName) (netip.Addr, bool, error)
}

// hostGateway is the address of the host in the cluster's network. readRequested fills it in for [findGateway].
type hostGateway struct {
	// Address is invalid if there is no such network.
	Address netip.Addr
	// Known is true if the address was read. Problem is the message of a failed read.
	Known   bool
	Problem string
}

// firstPort is the lowest port that a control plane may use apart from 443. Lower ports are reserved for
// services of the host.
const firstPort, httpsPort = 1024, 443

// reasonEndpoint is the reason of waits for another endpoint.
const reasonEndpoint = "EndpointNotAllowed"

// gatewayAgain is the delay before the network is read again, because it is not watched.
const gatewayAgain = 10 * time.Second

// findGateway requests the host's address in the cluster's network.
type findGateway struct{}

func (findGateway) String() string { return "find the host's address in the cluster's network" }

// readRequested makes one read that [decide] requested, and returns the snapshot with its result. The driver of package
// reconciler calls it.
func (c *controller) readRequested(ctx context.Context, s snapshot, q reconciler.ReadRequest) (snapshot, error) {
	b, err := c.backendOf(s.Plane)
	if err != nil {
		return s, err
	}
	switch q.(type) {
	case findGateway:
		s.Gateway = c.readGateway(ctx, s)
	case inspectAddons:
		s.Addons, err = c.inspectAddons(ctx, s)
	case backend.TakeTurn:
		s.Turn.Known = true
		s.Turn.Granted, err = c.turns.Take(ctx, backend.TurnRequest{Name: nameOf(s.Plane), Versions: s.Capabilities.Versions, Now: s.Now}, b.ControlPlanes)
	case backend.CountControlPlanes:
		s.PlaneCount.Known = true
		s.PlaneCount.Own, s.PlaneCount.All, err = b.ControlPlanes.Count(ctx, s.Plane.Namespace)
	default:
		err = reconciler.UnknownRead("hosted control plane", q)
	}
	return s, err
}

// readGateway reads the host's address in the network of the LocalCluster, if the Cluster has one.
func (c *controller) readGateway(ctx context.Context, s snapshot) hostGateway {
	g := hostGateway{Known: true}
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

// planEndpoint checks whether the control plane may listen at its endpoint. It is part of [planStart], so that a
// running control plane continues.
func planEndpoint(s snapshot) (p reconciler.Plan) {
	address, err := configOf(s).Address()
	if err != nil { // planConfiguration reports it
		return p
	}
	denied := deniedEndpoint(s, address)
	switch {
	case denied == "":
		return p
	case s.Capabilities.OwnEndpoints == nil && !s.Gateway.Known:
		p.Reads = append(p.Reads, findGateway{})
		return at(stageAdmission, p)
	case s.Gateway.Problem != "":
		p.WaitFor("NetworkNotKnown", "%s", s.Gateway.Problem).For("LocalCluster", s.Cluster.Spec.InfrastructureRef.Name).ForTime()
	default:
		p.WaitFor(reasonEndpoint, "%s", denied).For(kind, s.Plane.Name).UntilUserActs()
	}
	p.RecheckIn(gatewayAgain)
	return at(stageAdmission, p)
}

// deniedEndpoint returns why the control plane may not listen at the address, or an empty string if it may.
// The host restricts where its processes listen, because users who write Clusters could otherwise name the
// address of the management cluster, of another cluster, or a public address.
func deniedEndpoint(s snapshot, at netip.AddrPort) string {
	address := at.Addr().Unmap()
	if s.Capabilities.OwnEndpoints != nil && s.Capabilities.OwnEndpoints.SeparateEndpoint { // it uses no port of this host
		return s.Capabilities.DeniedEndpoint(s.Process, at)
	}
	switch {
	case slices.Contains(s.ReservedPorts, at.Port()):
		return fmt.Sprintf("Control plane endpoint %s is not allowed: port %d is used by the management cluster; use another", at, at.Port())
	case s.Capabilities.OwnEndpoints != nil:
		return s.Capabilities.DeniedEndpoint(s.Process, at)
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
