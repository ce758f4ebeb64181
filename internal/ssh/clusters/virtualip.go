package clusters

import (
	"cmp"
	"net/netip"
	"slices"

	"k8s.io/utils/ptr"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// Reasons of waits and conditions about the virtual IP address.
const (
	reasonVirtualIPTaken    = "VirtualIPTaken"
	reasonVirtualIPHosted   = "VirtualIPNotNeeded"
	reasonVirtualIPEndpoint = "EndpointDiffers"
	reasonUnresolved        = "HostsUnknown"
	reasonHostUnreachable   = "HostUnreachable"
	reasonNotHeld           = "NotHeld"
	reasonHeldBySeveral     = "HeldBySeveralHosts"
	reasonHeld              = "Held"
	reasonNoVirtualIPMember = "WaitingForControlPlaneHost"
)

// address returns the virtual IP address, which admission has validated. One of the control plane hosts holds it. If
// that host fails, keepalived gives it to another one.
func (s snapshot) address() netip.Addr {
	a, _ := netip.ParseAddr(s.Object.Spec.VirtualIP)
	return a
}

// member returns the member with the name of the SSHMachine.
func (s snapshot) member(name string) *member {
	for i := range s.Members {
		if s.Members[i].Name == name {
			return &s.Members[i]
		}
	}
	return nil
}

// isInitial reports whether the member creates the cluster with kubeadm: the control plane does not exist yet, and the
// first machine gets bootstrap data before all others.
func (s snapshot) isInitial(m member) bool {
	first := slices.IndexFunc(s.Members, func(m member) bool { return m.Bootstrapping && !m.Released })
	return !s.isCreated() && first >= 0 && s.Members[first].Name == m.Name
}

// configuration returns the configuration of a member.
func (s snapshot) configuration(m member) remote.VirtualIP {
	out := remote.VirtualIP{ClaimID: m.ClaimID, Address: s.address(), NodeAddress: nodeAddress(m.Host), Initial: s.isInitial(m), Leaving: m.Leaving}
	for _, other := range s.Members {
		if other.Name != m.Name {
			out.Peers = append(out.Peers, nodeAddress(other.Host))
		}
	}
	return out
}

// nodeAddress returns the address of the node on a host. The zero value is refused by package remote.
func nodeAddress(h *infrav1.SSHHost) netip.Addr {
	a, _ := netip.ParseAddr(inventory.NodeAddress(h))
	return a.Unmap()
}

// decideVirtualIP makes the virtual IP address the endpoint. decideEndpoint calls it.
func decideVirtualIP(s snapshot, p *reconciler.Plan) {
	address, provisioned := s.Object.Spec.VirtualIP, ptr.Deref(s.Object.Status.Initialization.Provisioned, false)
	switch e := s.Cluster.Spec.ControlPlaneEndpoint; {
	case s.Policy.DeniedVirtualIP(s.Object.Namespace, s.address()) != "":
		p.WaitFor(reasonDenied, "%s", s.Policy.DeniedVirtualIP(s.Object.Namespace, s.address())).For(kind, s.Object.Name).UntilUserActs()
	case isHosted(s.Cluster.Spec.ControlPlaneRef):
		p.WaitFor(reasonVirtualIPHosted, "spec.virtualIP is for control planes on hosts: remove it, because a %s has an address of its own", hostedKind).
			For(kind, s.Object.Name).UntilUserActs()
	case e.IsValid() && (e.Host != address || e.Port != infrav1.SSHVirtualIPPort):
		p.WaitFor(reasonVirtualIPEndpoint, "spec.controlPlaneEndpoint of Cluster %s differs from spec.virtualIP with port %d: remove one of them", s.Cluster.Name, infrav1.SSHVirtualIPPort).
			For(kind, s.Object.Name).UntilUserActs()
	case s.Taken != "" && !provisioned:
		p.WaitFor(reasonVirtualIPTaken, "Virtual IP address %s belongs to %s: choose another one", address, s.Taken).For(kind, s.Object.Name).UntilUserActs()
	case !s.Object.Spec.ControlPlaneEndpoint.IsValid():
		p.Do(setEndpoint{Address: address})
		p.WaitFor(reasonEndpoint, "Waiting for the virtual IP address to be written to spec.controlPlaneEndpoint").For(kind, s.Object.Name).ToChange("spec.controlPlaneEndpoint")
	}
}

// decideMembers configures the hosts that can hold the virtual IP address. Two hosts hold it at the same time if one
// starts before the others send it their advertisements. Therefore a new host starts after all running hosts have it in
// their configuration, also if one of them refuses it. decide calls it after decideVirtualIP. The first three rows apply
// to the whole cluster, the others to each host; the first row that applies decides:
//
//	the state of a host is unknown                       read it
//	a host or the address of its node is unknown         wait
//	a running host has another configuration             change it, before any host starts
//	a host refused its configuration a moment ago        wait
//	a host is released or not prepared any more          nothing
//	the cluster is not created                           start only the host that creates it
//	a host cannot be reached                             start others only if it does not respond in their network either
//	no running host holds the address                    start one host, if no other machine has the address
//	otherwise                                            start the hosts that do not run
func decideMembers(s snapshot, p *reconciler.Plan) {
	for _, m := range s.Members {
		if m.State == nil {
			p.Reads = append(p.Reads, readMember{Machine: m.Name})
		}
	}
	if len(p.Reads) > 0 {
		return
	}
	if len(s.Unresolved) > 0 {
		p.WaitFor(reasonUnresolved, "Waiting for the hosts of Machines %s and the IP addresses of their nodes to be known", condition.Names(s.Unresolved)).
			ForAll("Machine", s.Unresolved).ToChange("")
		p.RecheckIn(unsteadyInterval)
		return
	}
	if len(s.Members) == 0 {
		return
	}
	p.RecheckIn(steadyInterval)
	outdated := false
	for _, m := range s.Members {
		p.RecheckIn(m.State.At.Add(m.State.interval()).Sub(s.Now))
		waitForMember(m, p)
		if m.runs() && !m.Released && m.State.Digest != s.digest(m) {
			outdated = true
			if !s.refusedRecently(m) {
				p.Do(configure{Machine: m.Name, Why: "the control plane hosts or their roles have changed"})
			}
		}
	}
	if outdated {
		p.RecheckIn(unsteadyInterval) // the next plan starts other hosts, unless a running host has refused
		return
	}
	held := s.holders() > 0
	for _, m := range s.Members {
		if m.runs() || m.Released || !m.Prepared || m.State.Fault != nil || s.refusedRecently(m) || !s.isCreated() && !s.isInitial(m) {
			continue
		}
		p.Do(configure{Machine: m.Name, Why: "its host is prepared", Unused: !held, Silent: s.unreachable()})
		if !held {
			break // the next one starts when this one holds the address
		}
	}
	if len(p.Actions) > 0 || !held {
		p.RecheckIn(unsteadyInterval)
	}
}

// refusedRecently reports whether a host is not configured at the moment, because it refused its configuration.
func (s snapshot) refusedRecently(m member) bool {
	return m.State.Refused != nil && s.Now.Sub(m.State.RefusedAt) < refusedInterval
}

// unreachable returns the addresses of the members whose configuration cannot be changed when a new one starts.
func (s snapshot) unreachable() (out []netip.Addr) {
	for _, m := range s.Members {
		if m.State.Fault != nil {
			out = append(out, nodeAddress(m.Host))
		}
	}
	return out
}

func waitForMember(m member, p *reconciler.Plan) {
	switch {
	case m.State.Refused != nil:
		p.WaitFor(m.State.Refused.Reason, "SSHHost %s: %s", m.Host.Name, m.State.Refused.Message).For("SSHHost", m.Host.Namespace+"/"+m.Host.Name).UntilUserActs()
	case m.State.Fault != nil:
		p.WaitFor(reasonHostUnreachable, "%s", inventory.Sentence(m.State.Fault.Message)).For("SSHHost", m.Host.Namespace+"/"+m.Host.Name).ForTime()
	}
}

// runs reports whether keepalived runs on the host.
func (m member) runs() bool { return m.State != nil && m.State.Fault == nil && m.State.Running }

// isCreated reports whether the control plane has ever been initialized.
func (s snapshot) isCreated() bool {
	return ptr.Deref(s.Cluster.Status.Initialization.ControlPlaneInitialized, false)
}

// digest returns the digest of the configuration of a member. Embedded files can always be read.
func (s snapshot) digest(m member) string {
	d, _ := s.configuration(m).Digest()
	return d
}

// holders returns the number of hosts that hold the address.
func (s snapshot) holders() (n int) {
	for _, m := range s.Members {
		if m.State != nil && m.State.Holds {
			n++
		}
	}
	return n
}

// virtualIPHeld reports whether one host holds the address. The table of conditions (status.go) contains it.
func (j conditionInput) virtualIPHeld() condition.Result {
	if j.Object.Spec.VirtualIP == "" || j.plan.Stage.Order != stageReady || len(j.Members) == 0 {
		return condition.Absent()
	}
	n := j.holders()
	if n == 1 {
		return condition.True(reasonHeld)
	}
	for _, m := range j.Members {
		if m.State != nil && m.State.Refused != nil {
			return condition.False(m.State.Refused.Reason, inventory.Sentence(m.State.Refused.Message))
		}
	}
	if n > 1 {
		return condition.False(reasonHeldBySeveral, "Several control plane hosts hold the virtual IP address, because they do not receive the advertisements of each other: "+
			"allow IP protocol 112 (VRRP) between the hosts")
	}
	for _, m := range j.Members {
		if m.State != nil && m.State.Fault != nil {
			return condition.Unknown(reasonHostUnreachable, inventory.Sentence(m.State.Fault.Message))
		}
	}
	return condition.False(cmp.Or(j.notStarted(), reasonNotHeld), "No control plane host holds the virtual IP address: it is held when an API server is ready")
}

// notStarted returns the reason if no host has been configured yet.
func (j conditionInput) notStarted() string {
	for _, m := range j.Members {
		if m.runs() {
			return ""
		}
	}
	return reasonNoVirtualIPMember
}

// virtualIPStatus returns the members for the status. report calls it.
func (s snapshot) virtualIPStatus() (out infrav1.SSHVirtualIPStatus) {
	for _, m := range s.Members {
		row := infrav1.SSHVirtualIPMember{Machine: m.Name}
		if m.State != nil && m.State.Holds {
			row.Holder = ptr.To(true)
		}
		out.Members = append(out.Members, row)
	}
	return out
}
