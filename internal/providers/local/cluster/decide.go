package cluster

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/providers/local/subnet"
)

// Reasons of waits and conditions.
const (
	reasonCluster  = "WaitingForCluster"
	reasonMachines = "WaitingForMachines"
	reasonOverlap  = "RangesOverlap"
	reasonCreating = "CreatingNetwork"
	reasonDenied   = "DeniedByPolicy"
	reasonTaken    = "SubnetTaken"
	reasonDiffers  = "NetworkDiffers"
	// reasonOutside is of a network that is ready and does not carry packets of Pods or Services by itself.
	reasonOutside = "RangesOutside"
	// reasonControlPlane and reasonEndpoint are about the endpoint: the network is there.
	reasonControlPlane = "WaitingForControlPlane"
	reasonEndpoint     = "SettingControlPlaneEndpoint"
)

// apiServerPort is the port of the control plane endpoint, as everywhere in Kubernetes.
const apiServerPort = 6443

// fallback is when to look again after the host was asked for something, should its event be lost.
const fallback = 5 * time.Second

// soon is when to look again after what has taken effect already, and of which no event tells.
const soon = time.Millisecond

// roomAgain is when to look again where the host has no room, or not for this range.
const roomAgain = 30 * time.Second

// Decide makes a plan of the snapshot.
func Decide(s Snapshot) loop.Plan {
	var p loop.Plan
	switch {
	case !s.Object.DeletionTimestamp.IsZero():
		decideDeletion(s, &p)
	case s.Terms.Denied != "":
		p.WaitFor(reasonDenied, "%s", s.Terms.Denied).For(kind, s.Object.Name).ForPerson()
	case s.Fault != nil:
		waitForHost(s, &p)
	case s.Cluster == nil:
		p.WaitFor(reasonCluster, "Waiting for the Cluster that owns this object to appear").For("Cluster", ownerName(s.Object)).ToChange("")
	case s.Terms.None:
		decideWithout(s, &p)
	default:
		decideNetwork(s, &p)
	}
	return p
}

func decideDeletion(s Snapshot, p *loop.Plan) {
	switch {
	case s.Terms.None && s.Balancer == nil:
	case len(s.Machines) > 0:
		p.WaitFor(reasonMachines, "Waiting for LocalMachines %s to be gone: they use what the cluster has on this host", condition.Names(s.Machines)).ForAll("LocalMachine", s.Machines).ToChange("")
	case s.neverHadHost():
	case s.Fault != nil:
		waitForHost(s, p)
	case s.Balancer != nil:
		p.Do(DeleteBalancer{Why: "the LocalCluster is being deleted"})
		p.WaitFor("DeletingLoadBalancer", "The load balancer is being stopped").For(kind, s.Object.Name).ForTime()
		p.RecheckIn(soon)
	case s.Network != nil:
		p.Do(DeleteNetwork{Name: s.Name})
		p.WaitFor("DeletingNetwork", "The network %s is being deleted", s.Name).For(kind, s.Object.Name).ToChange("status.network")
		p.RecheckIn(fallback)
	}
}

// neverHadHost reports whether the host does not answer and, by what is recorded, never had anything of the object, as where the
// manager is a Pod: there may be no Docker to wait for. The endpoint is recorded beside the status, which a restore loses.
func (s Snapshot) neverHadHost() bool {
	provisioned := s.Object.Status.Initialization.Provisioned
	return s.Fault != nil && s.Fault.Kind == fault.Unreachable && s.Object.Status.Network.Name == "" &&
		!s.Object.Spec.ControlPlaneEndpoint.IsValid() && (provisioned == nil || !*provisioned)
}

// decideWithout is for clusters without a network: the endpoint is a matter of the control plane, which has to know one, or
// to choose one itself.
func decideWithout(s Snapshot, p *loop.Plan) {
	if s.Plane != nil && needsAddress(s.Plane) && !s.Cluster.Spec.ControlPlaneEndpoint.IsValid() && !s.Object.Spec.ControlPlaneEndpoint.IsValid() {
		p.WaitFor(reasonEndpoint, "The cluster has no network: set spec.backend.simulated or spec.controlPlaneEndpoint of %s %s", hostedKind, s.Plane.Name).
			For(hostedKind, s.Plane.Name).ForPerson()
	}
	ref := s.Cluster.Spec.ControlPlaneRef
	switch {
	case !s.Balanced || s.Cluster.Spec.ControlPlaneEndpoint.IsValid() || s.Object.Spec.ControlPlaneEndpoint.IsValid():
	case !ref.IsDefined() && s.Cluster.Spec.Topology.IsDefined(): // for a moment, and it may be to one that chooses itself
		p.WaitFor(reasonEndpoint, "Waiting for the control plane of the topology, to know who chooses the endpoint").For("Cluster", s.Cluster.Name).
			ToChange("spec.controlPlaneRef")
	case ref.IsDefined() && !hosted(ref):
		decideOffered(s, p)
	}
}

// decideOffered offers an endpoint to a control plane on machines.
func decideOffered(s Snapshot, p *loop.Plan) {
	if !s.Offered.IsValid() {
		p.Ask = append(p.Ask, AskEndpoint{})
		return
	}
	p.Do(SetEndpoint{Host: s.Offered.Addr().String(), Port: int32(s.Offered.Port())})
	p.WaitFor(reasonEndpoint, "The control plane endpoint is being set").For(kind, s.Object.Name).ToChange("spec.controlPlaneEndpoint")
}

// waitForHost waits until the host answers as it should.
func waitForHost(s Snapshot, p *loop.Plan) {
	p.WaitFor(s.Fault.Reason, "%s", s.Fault.Message).For(kind, s.Object.Name).ForTime()
	if s.Fault.Kind != fault.Unreachable { // else the hub tells when the host answers
		p.RecheckIn(fallback)
	}
}

func decideNetwork(s Snapshot, p *loop.Plan) {
	if s.Network == nil {
		decideNew(s, p)
		return
	}
	if message := s.differs(); message != "" {
		p.WaitFor(reasonDiffers, "%s", message).For(kind, s.Object.Name).ForPerson()
		return
	}
	if message := collision(s, s.Network.Subnet); message != "" {
		p.WaitFor(reasonOverlap, "%s", message).For(kind, s.Object.Name).ForPerson()
		return
	}
	decideEndpoint(s, p)
	decideBalancer(s, p)
}

// decideNew makes the network if the operator allows it and the host has room for it.
func decideNew(s Snapshot, p *loop.Plan) {
	want, why := wantedSubnet(s)
	if want.IsValid() {
		if message := collision(s, want); message != "" {
			p.WaitFor(reasonOverlap, "%s", message).For(kind, s.Object.Name).ForPerson()
			return
		}
		if message := s.Policy.DeniedRange(want); message != "" {
			p.WaitFor(reasonDenied, "%s", message).For(kind, s.Object.Name).ForPerson()
			return
		}
	}
	if message := s.Policy.DeniedInternet(s.Object.Namespace); s.internet() && message != "" {
		p.WaitFor(reasonDenied, "%s", message).For(kind, s.Object.Name).ForPerson()
		return
	}
	if s.Taken == nil {
		p.Ask = append(p.Ask, AskTaken{})
		return
	}
	own, all := backend.CountNetworks(*s.Taken, s.Object.Namespace)
	if message := s.Policy.Maxima.Networks.Exceeded("maxima.networks", s.Object.Namespace, own, all); message != "" {
		p.WaitFor(reasonDenied, "%s", message).For(kind, s.Object.Name).ForPerson()
		p.RecheckIn(roomAgain)
		return
	}
	if want.IsValid() {
		if message := backend.ExceededAddresses(s.Policy.Maxima, s.Object.Namespace, want, *s.Taken); message != "" {
			p.WaitFor(reasonDenied, "%s", message).For(kind, s.Object.Name).ForPerson()
			p.RecheckIn(roomAgain)
			return
		}
		if message := backend.Conflict(want, *s.Taken); message != "" {
			p.WaitFor(reasonTaken, "%s", message).For(kind, s.Object.Name).ForPerson()
			p.RecheckIn(roomAgain)
			return
		}
	}
	p.Do(EnsureNetwork{Name: s.Name, Subnet: want, Internet: s.internet(), Why: why})
	p.WaitFor(reasonCreating, "The network %s is being created", s.Name).For(kind, s.Object.Name).ToChange("status.network")
	p.RecheckIn(fallback)
}

// internet reports whether the cluster asks for a way out of the host.
func (s Snapshot) internet() bool {
	c := s.Object.Spec.Backend.Container
	return c != nil && c.Network.Internet
}

// differs returns what is wrong where the network of an earlier object with this name is still there, and leads out of the
// host although this one does not ask for it, or the other way round.
func (s Snapshot) differs() string {
	const remedy = "delete this cluster and its network (docker network rm %[1]s), and create it again"
	switch {
	case s.Network.Internet && !s.internet():
		return fmt.Sprintf("Network %[1]s has a way out of this host that spec.backend.container.network.internet does not ask for: "+remedy, s.Network.Name)
	case !s.Network.Internet && s.internet():
		return fmt.Sprintf("Network %[1]s is internal, and spec.backend.container.network.internet asks for a way out of this host: "+remedy, s.Network.Name)
	}
	return ""
}

// wantedSubnet returns the range to ask for, invalid for any: a network that was there before keeps its range, since
// nodes and control planes know their addresses. What the status says is checked as what the spec says: others can write
// it.
func wantedSubnet(s Snapshot) (netip.Prefix, string) {
	if text := s.Object.Status.Network.Subnet; text != "" {
		if p, err := netip.ParsePrefix(text); err == nil {
			return p, "the network has been removed"
		}
	}
	if c := s.Object.Spec.Backend.Container; c != nil && c.Network.Subnet != "" {
		if p, err := netip.ParsePrefix(c.Network.Subnet); err == nil {
			return p, "the cluster has none yet"
		}
	}
	return netip.Prefix{}, "the cluster has none yet"
}

// collision returns what is wrong with the ranges of the Cluster in a network, empty if nothing is.
func collision(s Snapshot, p netip.Prefix) string {
	layout, err := subnet.Plan(p)
	if err != nil {
		return err.Error()
	}
	if r, ok := layout.Overlapping(s.ranges()); ok {
		return fmt.Sprintf("The range %s in spec.clusterNetwork of the Cluster contains addresses of nodes (%s): "+
			"choose Pod and Service ranges elsewhere in %s, for example %s and %s", r, layout.Nodes, p, layout.Ranges().Pods, layout.Ranges().Services)
	}
	return ""
}

// decideEndpoint offers the host's address in the network as control plane endpoint where nothing else provides one
// : not the user, not the Cluster, and not a hosted control plane that was told where to listen.
func decideEndpoint(s Snapshot, p *loop.Plan) {
	switch {
	case s.Cluster.Spec.ControlPlaneEndpoint.IsValid(), s.Object.Spec.ControlPlaneEndpoint.IsValid():
	case hosted(s.Cluster.Spec.ControlPlaneRef) && s.Plane == nil:
		p.WaitFor(reasonControlPlane, "Waiting for %s %s, which may bring an endpoint, to exist", hostedKind, s.Cluster.Spec.ControlPlaneRef.Name).
			For(hostedKind, s.Cluster.Spec.ControlPlaneRef.Name).ToChange("")
	case s.Plane != nil && s.Plane.Spec.ControlPlaneEndpoint.IsValid():
	default:
		p.Do(SetEndpoint{Host: s.Network.Gateway.String(), Port: apiServerPort})
		p.WaitFor(reasonEndpoint, "The control plane endpoint is being set").For(kind, s.Object.Name).ToChange("spec.controlPlaneEndpoint")
	}
}

// outside describes the Cluster's ranges that are not in its network, empty if all are. An internal network of Docker drops their packets
// between nodes, and Flannel as Slipway ships it sends them as they are.
func (s Snapshot) outside() string {
	if s.Cluster == nil || s.Network == nil {
		return ""
	}
	layout, err := subnet.Plan(s.Network.Subnet)
	if err != nil {
		return ""
	}
	out := layout.Outside(s.ranges())
	if len(out) == 0 {
		return ""
	}
	free := layout.Ranges()
	return fmt.Sprintf("The ranges %s in spec.clusterNetwork of the Cluster are outside of the network %s: Pods on different nodes reach each other only "+
		"with a network add-on that wraps packets, which Flannel as it comes with Slipway does not. Install such an add-on, or create the cluster "+
		"with ranges in the network, for example %s for Pods and %s for Services", strings.Trim(fmt.Sprint(out), "[]"), s.Network.Subnet, free.Pods, free.Services)
}
