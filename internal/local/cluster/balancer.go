package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// balancerRecheck is the interval for checking a load balancer that another process started, because no event reports
// its exit.
const balancerRecheck = 10 * time.Second

// Reasons of the condition LoadBalancerReady and of waits for the endpoint.
const (
	reasonNoMembers   = "WaitingForControlPlaneMachines"
	reasonNoAnswer    = "NoControlPlaneAnswers"
	reasonStarting    = "StartingLoadBalancer"
	reasonStopped     = "LoadBalancerStopped"
	reasonPort        = "EndpointNotAllowed"
	lowestPort        = 1024
	httpsPort         = 443
	machineKind       = "Machine"
	membersMaxInWords = 5
)

// decideBalancer is the part of [decide] that runs a load balancer for the machines of the control plane if the
// endpoint is the host's address in the cluster's network. The first row that applies decides:
//
//	no load balancers available, or the control plane is hosted    do nothing
//	the endpoint is elsewhere                                      delete the load balancer: the user has one
//	the port is reserved                                           wait
//	no load balancer, and no machine has an address                nothing yet
//	it does not run, or has other members or another endpoint      start or update it
//	otherwise                                                      check again later
func decideBalancer(s snapshot, p *reconciler.Plan) {
	listen, ours := s.listen()
	switch {
	case !s.HasBalancers:
	case isHosted(s.Cluster.Spec.ControlPlaneRef):
	case !ours:
		if s.Balancer != nil {
			p.Do(deleteBalancer{Why: "the control plane endpoint is elsewhere"})
		}
	case s.deniedPort(listen.Port()):
		p.WaitFor(reasonPort, "Control plane endpoint %s is not allowed: port %d is reserved; create the cluster with another, for example 6443", listen, listen.Port()).
			For(kind, s.Object.Name).UntilUserActs()
	case s.Balancer == nil && len(s.Members) == 0:
		if s.AddressesPending {
			p.RecheckIn(lostEventRecheck)
		}
	case s.Balancer == nil || !s.Balancer.Running || s.Balancer.Listen != listen || !slices.Equal(s.Balancer.Members, s.Members):
		p.Do(ensureBalancer{Listen: listen, Members: memberNames(s.Members), Why: s.whyBalance(listen)})
		p.RecheckIn(lostEventRecheck)
	default:
		p.RecheckIn(balancerRecheck)
	}
}

// listen returns the address of the load balancer, and false if this host does not serve the endpoint.
func (s snapshot) listen() (netip.AddrPort, bool) {
	at := s.Object.Spec.ControlPlaneEndpoint
	if s.Cluster.Spec.ControlPlaneEndpoint.IsValid() {
		at = s.Cluster.Spec.ControlPlaneEndpoint
	}
	host, err := netip.ParseAddr(at.Host)
	if err != nil || s.Network == nil || host != s.Network.Gateway || at.Port < 1 || at.Port > 65535 {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(host, uint16(at.Port)), true
}

// deniedPort reports whether the port is reserved.
func (s snapshot) deniedPort(port uint16) bool {
	return slices.Contains(s.ReservedPorts, port) || port < lowestPort && port != httpsPort ||
		slices.Contains(s.Policy.ControlPlanes.ReservedPorts, int32(port))
}

func (s snapshot) whyBalance(listen netip.AddrPort) string {
	switch {
	case s.Balancer == nil:
		return "there is no load balancer yet"
	case !s.Balancer.Running:
		return "the load balancer does not run"
	case s.Balancer.Listen != listen:
		return "the endpoint changed"
	}
	return "it forwarded to " + memberNames(s.Balancer.Members)
}

// withExpiry appends the expiry of API server certificates to the names of members.
func withExpiry(members []backend.BalancerMember, expired map[string]string) []backend.BalancerMember {
	out := slices.Clone(members)
	for i := range out {
		if at := expired[out[i].Name]; at != "" {
			out[i].Name += " (the certificate of its API server expired on " + at + ")"
		}
	}
	return out
}

// memberNames lists the names of the first few members, for messages.
func memberNames(members []backend.BalancerMember) string {
	var names []string
	for _, m := range members {
		text := m.Name
		if m.Leaving {
			text += " (leaving)"
		}
		names = append(names, text)
	}
	if len(names) == 0 {
		return "no machine"
	}
	if more := len(names) - membersMaxInWords; more > 0 {
		names = append(names[:membersMaxInWords], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// balancerReady evaluates the condition LoadBalancerReady: whether the endpoint leads to an API server. The condition
// is absent if no load balancer is needed. The report (status.go) calls it.
func (j conditionInput) balancerReady() condition.Result {
	if j.Cluster == nil || j.Capabilities.NoNetwork || !j.HasBalancers || isHosted(j.Cluster.Spec.ControlPlaneRef) {
		return condition.Absent()
	}
	b := j.Balancer
	if _, ours := j.listen(); !ours && b == nil {
		return condition.Absent()
	}
	switch {
	case b == nil:
		return condition.False(reasonNoMembers, "Waiting for a Machine of the control plane to have an address")
	case !b.Running:
		if b.Detail != "" {
			return condition.False(reasonStopped, "The load balancer does not run and is being restarted: "+b.Detail)
		}
		return condition.False(reasonStarting, "The load balancer is being started")
	case len(b.Healthy) == 0:
		return condition.False(reasonNoAnswer, "No API server responds on Machines "+memberNames(withExpiry(b.Members, b.Expired)))
	}
	var silent []backend.BalancerMember
	for _, m := range b.Members {
		if !slices.Contains(b.Healthy, m.Name) && !m.Leaving {
			silent = append(silent, m)
		}
	}
	if len(silent) > 0 {
		return condition.TrueBecause(clusterv1.ReadyReason, "The API server does not respond on Machines "+memberNames(withExpiry(silent, b.Expired)))
	}
	return condition.True(clusterv1.ReadyReason)
}
