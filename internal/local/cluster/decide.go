package cluster

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/subnet"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// Reasons of waits and conditions. Their values must not change.
const (
	reasonCluster  = "WaitingForCluster"
	reasonMachines = "WaitingForMachines"
	reasonOverlap  = "RangesOverlap"
	reasonCreating = "CreatingNetwork"
	reasonDenied   = "DeniedByPolicy"
	reasonTaken    = "SubnetTaken"
	reasonDiffers  = "NetworkDiffers"
	// reasonOutside is the reason of a network that is ready, but does not carry the packets of Pods or Services by
	// itself.
	reasonOutside = "RangesOutside"
	// reasonControlPlane and reasonEndpoint are about the endpoint; the network is ready.
	reasonControlPlane = "WaitingForControlPlane"
	reasonEndpoint     = "SettingControlPlaneEndpoint"
)

// Stages of a plan ([reconciler.Stage]).
const (
	stageDeletion = iota + 1
	stagePrerequisites
	stageNetwork
	stageEndpoint // the network is ready, or none is needed
)

// apiServerPort is the port of the control plane endpoint, the Kubernetes default.
const apiServerPort = 6443

// lostEventRecheck is the delay before the next check after a change on the host, in case its event is lost.
const lostEventRecheck = 5 * time.Second

// immediateRecheck is the delay before the next reconciliation after a change that takes effect at once and causes no
// event.
const immediateRecheck = time.Millisecond

// quotaRecheck is the delay before the next check if the host has no free range or the limit is reached.
const quotaRecheck = 30 * time.Second

// decide computes the plan for a LocalCluster. Package reconciler calls it in each reconciliation, again after the
// reads that it requests. It is pure: it neither reads nor writes. The first case that applies decides.
func decide(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	stage := stagePrerequisites
	switch {
	case !s.Object.DeletionTimestamp.IsZero():
		stage = stageDeletion
		decideDeletion(s, &p)
	case s.Capabilities.Denied != "":
		p.WaitFor(reasonDenied, "%s", s.Capabilities.Denied).For(kind, s.Object.Name).UntilUserActs()
	case s.Fault != nil:
		waitForHost(s, &p)
	case s.Cluster == nil:
		p.WaitFor(reasonCluster, "Waiting for the Cluster that owns this object to exist").For("Cluster", ownerName(s.Object)).ToChange("")
	case s.Capabilities.NoNetwork:
		stage = stageEndpoint
		decideWithoutNetwork(s, &p)
	case s.Network == nil:
		stage = stageNetwork
		decideNewNetwork(s, &p)
	case !s.networkFits(&p):
		stage = stageNetwork
	default:
		stage = stageEndpoint
		decideEndpoint(s, &p)
		decideBalancer(s, &p)
	}
	p.Enter(stage, "")
	return p
}

func decideDeletion(s snapshot, p *reconciler.Plan) {
	switch {
	case s.Capabilities.NoNetwork && s.Balancer == nil:
	case len(s.Machines) > 0:
		p.WaitFor(reasonMachines, "Waiting for LocalMachines %s to be deleted: they use the cluster's infrastructure on this host", condition.Names(s.Machines)).ForAll("LocalMachine", s.Machines).ToChange("")
	case s.neverHadHost():
	case s.Fault != nil:
		waitForHost(s, p)
	case s.Balancer != nil:
		p.Do(deleteBalancer{Why: "the LocalCluster is being deleted"})
		p.WaitFor("DeletingLoadBalancer", "The load balancer is being stopped").For(kind, s.Object.Name).ForTime()
		p.RecheckIn(immediateRecheck)
	case s.Network != nil:
		p.Do(deleteNetwork{Name: s.Name})
		p.WaitFor("DeletingNetwork", "The network %s is being deleted", s.Name).For(kind, s.Object.Name).ToChange("status.network")
		p.RecheckIn(lostEventRecheck)
	}
}

// neverHadHost reports whether the host is unreachable and, according to the object, never had resources for it. This
// is the case if the manager runs in a Pod, where there may be no Docker to wait for. The endpoint in the spec is
// checked in addition to the status, because a restore loses the status.
func (s snapshot) neverHadHost() bool {
	return s.Fault != nil && s.Fault.Kind == fault.Unreachable && s.Object.Status.Network.Name == "" &&
		!s.Object.Spec.ControlPlaneEndpoint.IsValid() && !ptr.Deref(s.Object.Status.Initialization.Provisioned, false)
}

// decideWithoutNetwork handles clusters without a network. The endpoint is provided by the control plane, which must
// have one in its spec or choose one itself.
func decideWithoutNetwork(s snapshot, p *reconciler.Plan) {
	if s.HostedControlPlane != nil && needsAddress(s.HostedControlPlane) && !s.Cluster.Spec.ControlPlaneEndpoint.IsValid() && !s.Object.Spec.ControlPlaneEndpoint.IsValid() {
		p.WaitFor(reasonEndpoint, "The cluster has no network: set spec.backend.simulated or spec.controlPlaneEndpoint of %s %s", hostedKind, s.HostedControlPlane.Name).
			For(hostedKind, s.HostedControlPlane.Name).UntilUserActs()
	}
	ref := s.Cluster.Spec.ControlPlaneRef
	switch {
	case !s.HasBalancers || s.Cluster.Spec.ControlPlaneEndpoint.IsValid() || s.Object.Spec.ControlPlaneEndpoint.IsValid():
	case !ref.IsDefined() && s.Cluster.Spec.Topology.IsDefined(): // temporary, and the control plane may choose the endpoint itself
		p.WaitFor(reasonEndpoint, "Waiting for the topology to create the control plane, which may choose the endpoint").For("Cluster", s.Cluster.Name).
			ToChange("spec.controlPlaneRef")
	case ref.IsDefined() && !isHosted(ref):
		decideReservedEndpoint(s, p)
	}
}

// decideReservedEndpoint sets an available endpoint for a control plane on machines.
func decideReservedEndpoint(s snapshot, p *reconciler.Plan) {
	if !s.ReservedEndpoint.IsValid() {
		p.Reads = append(p.Reads, readEndpoint{})
		return
	}
	p.Do(setEndpoint{Host: s.ReservedEndpoint.Addr().String(), Port: int32(s.ReservedEndpoint.Port())})
	p.WaitFor(reasonEndpoint, "The control plane endpoint is being set").For(kind, s.Object.Name).ToChange("spec.controlPlaneEndpoint")
}

// waitForHost waits until the fault of the host is resolved.
func waitForHost(s snapshot, p *reconciler.Plan) {
	p.WaitFor(s.Fault.Reason, "%s", s.Fault.Message).For(kind, s.Object.Name).ForTime()
	if s.Fault.Kind != fault.Unreachable { // otherwise the hub reports when the host responds
		p.RecheckIn(lostEventRecheck)
	}
}

// networkFits reports whether the existing network can serve the Cluster. If it cannot, the plan waits for the user.
func (s snapshot) networkFits(p *reconciler.Plan) bool {
	if message := s.internetMismatch(); message != "" {
		p.WaitFor(reasonDiffers, "%s", message).For(kind, s.Object.Name).UntilUserActs()
		return false
	}
	if message := rangeCollision(s, s.Network.Subnet); message != "" {
		p.WaitFor(reasonOverlap, "%s", message).For(kind, s.Object.Name).UntilUserActs()
		return false
	}
	return true
}

// decideNewNetwork creates the network if the operator allows it and the host has a free range for it.
func decideNewNetwork(s snapshot, p *reconciler.Plan) {
	want, why := wantedSubnet(s)
	if want.IsValid() {
		if message := rangeCollision(s, want); message != "" {
			p.WaitFor(reasonOverlap, "%s", message).For(kind, s.Object.Name).UntilUserActs()
			return
		}
		if message := s.Policy.DeniedRange(want); message != "" {
			p.WaitFor(reasonDenied, "%s", message).For(kind, s.Object.Name).UntilUserActs()
			return
		}
	}
	if message := s.Policy.DeniedInternet(s.Object.Namespace); s.internet() && message != "" {
		p.WaitFor(reasonDenied, "%s", message).For(kind, s.Object.Name).UntilUserActs()
		return
	}
	if s.UsedRanges == nil {
		p.Reads = append(p.Reads, readUsedRanges{})
		return
	}
	own, all := backend.CountNetworks(*s.UsedRanges, s.Object.Namespace)
	if message := s.Policy.Maxima.Networks.Exceeded("maxima.networks", s.Object.Namespace, own, all); message != "" {
		p.WaitFor(reasonDenied, "%s", message).For(kind, s.Object.Name).UntilUserActs()
		p.RecheckIn(quotaRecheck)
		return
	}
	if want.IsValid() {
		if message := backend.AddressQuotaMessage(s.Policy.Maxima, s.Object.Namespace, want, *s.UsedRanges); message != "" {
			p.WaitFor(reasonDenied, "%s", message).For(kind, s.Object.Name).UntilUserActs()
			p.RecheckIn(quotaRecheck)
			return
		}
		if message := backend.RangeConflict(want, *s.UsedRanges); message != "" {
			p.WaitFor(reasonTaken, "%s", message).For(kind, s.Object.Name).UntilUserActs()
			p.RecheckIn(quotaRecheck)
			return
		}
	}
	p.Do(ensureNetwork{Name: s.Name, Subnet: want, Internet: s.internet(), Why: why})
	p.WaitFor(reasonCreating, "The network %s is being created", s.Name).For(kind, s.Object.Name).ToChange("status.network")
	p.RecheckIn(lostEventRecheck)
}

// internet reports whether the cluster requests a route out of the host.
func (s snapshot) internet() bool {
	c := s.Object.Spec.Backend.Container
	return c != nil && c.Network.Internet
}

// internetMismatch returns a message if the network still exists from an earlier object of this name, and has a route
// out of the host that this object does not request, or the reverse.
func (s snapshot) internetMismatch() string {
	const remedy = "delete this cluster and its network (docker network rm %[1]s), and create it again"
	switch {
	case s.Network.Internet && !s.internet():
		return fmt.Sprintf("Network %[1]s has internet access, but spec.backend.container.network.internet does not request it: "+remedy, s.Network.Name)
	case !s.Network.Internet && s.internet():
		return fmt.Sprintf("Network %[1]s is internal, but spec.backend.container.network.internet requests internet access: "+remedy, s.Network.Name)
	}
	return ""
}

// wantedSubnet returns the range to request, invalid for any range. A network that existed before retains its range,
// because nodes and control planes use its addresses. The range in the status is validated like the range in the spec,
// because other users can write it.
func wantedSubnet(s snapshot) (netip.Prefix, string) {
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

// rangeCollision returns a message if ranges of the Cluster contain node addresses of the network, and an empty string
// otherwise.
func rangeCollision(s snapshot, p netip.Prefix) string {
	layout, err := subnet.NewLayout(p)
	if err != nil {
		return err.Error()
	}
	if r, ok := layout.Overlapping(backend.ClusterRanges(s.Cluster)); ok {
		return fmt.Sprintf("The range %s in spec.clusterNetwork of the Cluster contains addresses of nodes (%s): "+
			"choose Pod and Service ranges elsewhere in %s, for example %s and %s", r, layout.Nodes, p, layout.Ranges().Pods, layout.Ranges().Services)
	}
	return ""
}

// decideEndpoint sets the host's address in the network as the control plane endpoint if nothing else provides one:
// neither the user, nor the Cluster, nor a hosted control plane with an endpoint in its spec.
func decideEndpoint(s snapshot, p *reconciler.Plan) {
	switch {
	case s.Cluster.Spec.ControlPlaneEndpoint.IsValid(), s.Object.Spec.ControlPlaneEndpoint.IsValid():
	case isHosted(s.Cluster.Spec.ControlPlaneRef) && s.HostedControlPlane == nil:
		p.WaitFor(reasonControlPlane, "Waiting for %s %s to exist, because it may provide the endpoint", hostedKind, s.Cluster.Spec.ControlPlaneRef.Name).
			For(hostedKind, s.Cluster.Spec.ControlPlaneRef.Name).ToChange("")
	case s.HostedControlPlane != nil && s.HostedControlPlane.Spec.ControlPlaneEndpoint.IsValid():
	default:
		p.Do(setEndpoint{Host: s.Network.Gateway.String(), Port: apiServerPort})
		p.WaitFor(reasonEndpoint, "The control plane endpoint is being set").For(kind, s.Object.Name).ToChange("spec.controlPlaneEndpoint")
	}
}

// outsideRangesMessage describes the Cluster's ranges that are not in its network, empty if all are. Docker's internal
// networks drop the packets of such ranges between nodes, and Flannel as shipped with Slipway does not encapsulate
// them. The condition NetworkReady (status.go) shows it.
func (s snapshot) outsideRangesMessage() string {
	if s.Cluster == nil || s.Network == nil {
		return ""
	}
	layout, err := subnet.NewLayout(s.Network.Subnet)
	if err != nil {
		return ""
	}
	out := layout.Outside(backend.ClusterRanges(s.Cluster))
	if len(out) == 0 {
		return ""
	}
	free := layout.Ranges()
	return fmt.Sprintf("The ranges %s in spec.clusterNetwork of the Cluster are outside of the network %s: Pods on different nodes reach each other only "+
		"with a network add-on that encapsulates packets, which Flannel as installed by Slipway does not. Install such an add-on, or create the cluster "+
		"with ranges in the network, for example %s for Pods and %s for Services", strings.Trim(fmt.Sprint(out), "[]"), s.Network.Subnet, free.Pods, free.Services)
}
