package workload

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/etcd"
)

const (
	// joinsFor is the time after the creation of its Node during which a Machine may still be starting its etcd
	// member. kubeadm adds the member before etcd starts, and images may have to be pulled.
	joinsFor = 10 * time.Minute
	// deadAfter is the time after which a member without a Machine counts as orphaned if its Node is not ready. Nodes
	// are temporarily not ready when the kubelet restarts or the host is slow.
	deadAfter = time.Minute
)

// QuorumMachine contains the properties of a control plane Machine that can identify its etcd member.
type QuorumMachine struct {
	Name string
	// Node is the name in status.nodeRef, or empty if unknown.
	Node string
	// ProviderIDs of the Machine and of its infrastructure machine.
	ProviderIDs []string
	// Addresses of the Machine: IP addresses and host names.
	Addresses []string
	// Bootstrapped is true if bootstrap data exists, so that the Machine may have joined etcd.
	Bootstrapped bool
	// Leaving is true if the Machine is being deleted.
	Leaving bool
	// Created is the creation time of the Machine.
	Created time.Time
}

// NewMachine returns the properties of a Machine, with the provider ID of its infrastructure machine.
func NewMachine(m *clusterv1.Machine, leaving bool, infrastructure string) QuorumMachine {
	out := QuorumMachine{
		Name: m.Name, Node: m.Status.NodeRef.Name, Leaving: leaving, Created: m.CreationTimestamp.Time,
		Bootstrapped: m.Spec.Bootstrap.DataSecretName != nil || m.Status.NodeRef.IsDefined(),
	}
	for _, id := range []string{m.Spec.ProviderID, infrastructure} {
		if id != "" && !slices.Contains(out.ProviderIDs, id) {
			out.ProviderIDs = append(out.ProviderIDs, id)
		}
	}
	for _, a := range m.Status.Addresses {
		out.Addresses = append(out.Addresses, a.Address)
	}
	return out
}

// QuorumInput is the input of [QuorumMatch].
type QuorumInput struct {
	Now      time.Time
	Machines []QuorumMachine
	// State is the observed state of the workload cluster.
	State State
}

// QuorumMatching is the mapping between etcd members and Machines.
type QuorumMatching struct {
	Members QuorumMembers
	// own contains the members by the name of their Machine. candidates contains the members that may run on a
	// Machine.
	own        map[string]QuorumMember
	candidates map[string][]QuorumMember
}

// QuorumMatch maps the etcd members to Machines.
func QuorumMatch(in QuorumInput) QuorumMatching {
	found := in.State.Etcd.Members
	links := in.links()
	out := QuorumMatching{own: map[string]QuorumMember{}, candidates: map[string][]QuorumMember{}}
	for _, m := range found {
		health, problem := healthOf(in.State.Etcd, m)
		out.Members = append(out.Members, QuorumMember{ID: m.ID, Name: m.Name, Learner: m.Learner, Health: health, Problem: problem})
	}
	in.eliminate(links)
	joining := slices.ContainsFunc(in.Machines, func(m QuorumMachine) bool { return !links.agree(m.Name) && in.isJoining(m) })
	for i := range out.Members {
		out.Members[i].Class, out.Members[i].Machine = in.classify(found[i], links, joining)
	}
	for _, m := range in.Machines {
		out.attribute(in, m, links)
	}
	return out
}

// attribute records the member of a Machine, or its candidates.
func (out QuorumMatching) attribute(in QuorumInput, m QuorumMachine, links links) {
	named := links.of(m.Name)
	for _, member := range out.Members {
		switch {
		case member.Class == ofMachine && member.Machine == m.Name:
			out.own[m.Name] = member
		case member.Class == ofMachine:
		case slices.Contains(named, member.ID), !links.agree(m.Name) && len(links.to(member.ID)) == 0 && in.mayRun(m, member.Name):
			out.candidates[m.Name] = append(out.candidates[m.Name], member)
		}
	}
}

// Of returns the member that runs on a Machine, or false if there is none or it is undetermined.
func (m QuorumMatching) Of(machine string) (QuorumMember, bool) {
	member, is := m.own[machine]
	return member, is
}

// Doubt describes why the member of a Machine is undetermined. It is empty if it is known which member, or that no
// member, runs on the Machine.
func (m QuorumMatching) Doubt(machine string) string {
	may := m.candidates[machine]
	if len(may) == 0 {
		return ""
	}
	var names []string
	for _, member := range may {
		names = append(names, member.Text())
	}
	return fmt.Sprintf("one of the etcd members that belong to no other Machine may run on it (%s): correct spec.providerID of its Node, or its addresses, "+
		"or remove the member from etcd if it is of no use", strings.Join(names, "; "))
}

// HasMember reports whether a member runs, or may run, on a Machine.
func (m QuorumMatching) HasMember(machine string) bool {
	_, is := m.own[machine]
	return is || len(m.candidates[machine]) > 0
}

// Obstacle returns the reason why a Machine cannot be removed now together with its member. It is empty if the quorum
// remains for each member that may run on the Machine.
func (m QuorumMatching) Obstacle(machine string) string {
	may := m.candidates[machine]
	if member, is := m.own[machine]; is {
		may = []QuorumMember{member}
	}
	for _, member := range may {
		if !m.Members.AllowsRemoval(member.ID) {
			return m.Members.Removal(member.ID)
		}
	}
	if !m.Members.HasQuorum() {
		return m.Members.Removal(0)
	}
	return ""
}

// Orphans returns the orphaned members, sorted by ID.
func (m QuorumMatching) Orphans() QuorumMembers {
	return slices.DeleteFunc(slices.Clone(m.Members), func(member QuorumMember) bool { return member.Class != quorumOrphan })
}

// Named returns the member with the given name, or false if it does not exist.
func (m QuorumMatching) Named(name string) (QuorumMember, bool) {
	for _, member := range m.Members {
		if member.Name == name && name != "" {
			return member, true
		}
	}
	return QuorumMember{}, false
}

// eliminate links the last remaining member with the last remaining Machine, if the member may run on the Machine.
func (in QuorumInput) eliminate(l links) {
	free := slices.DeleteFunc(slices.Clone(in.State.Etcd.Members), func(m etcd.Member) bool { return len(l.to(m.ID)) > 0 })
	if len(free) != 1 {
		return
	}
	member := free[0]
	left := slices.DeleteFunc(slices.Clone(in.Machines), func(m QuorumMachine) bool { return l.agree(m.Name) || !in.mayRun(m, member.Name) })
	if len(left) != 1 || len(l.of(left[0].Name)) > 0 {
		return
	}
	node := in.State.Nodes[member.Name]
	switch m := left[0]; {
	case member.Name != "" && m.Node != "": // the Machine has another Node
	case node != nil && node.CreationTimestamp.Time.Before(m.Created): // the Node is older than the Machine
	default:
		l[link{m.Name, member.ID}] = true
	}
}

// isJoining reports whether a Machine without a member may be about to get one.
func (in QuorumInput) isJoining(m QuorumMachine) bool {
	return !m.Leaving && m.Bootstrapped && (m.Node == "" || in.isYoung(m.Node))
}

// isYoung reports whether a Node was created recently or is unknown.
func (in QuorumInput) isYoung(name string) bool {
	node := in.State.Nodes[name]
	return node == nil || in.Now.Sub(node.CreationTimestamp.Time) < joinsFor
}

// mayRun reports whether a Machine may run a member without any evidence. A member without a name belongs to a
// Machine that is joining.
func (in QuorumInput) mayRun(m QuorumMachine, member string) bool {
	switch {
	case !m.Bootstrapped:
		return false
	case member == "":
		return in.isYoung(m.Node)
	}
	return !in.isOfItsNode(m)
}

// isOfItsNode reports whether the Node of a Machine belongs to a control plane, so that its member has the Node's
// name. A reference to a worker or to a missing Node proves nothing.
func (in QuorumInput) isOfItsNode(m QuorumMachine) bool {
	return m.Node != "" && in.State.Nodes[m.Node] != nil && in.State.PodOf(EtcdPod, m.Node) != nil
}

// classify returns the class of a member and the Machine that runs it.
func (in QuorumInput) classify(member etcd.Member, l links, joining bool) (QuorumClass, string) {
	switch to := l.to(member.ID); {
	case len(to) == 1 && len(l.of(to[0])) == 1:
		return ofMachine, to[0]
	case len(to) > 0:
		return quorumDisputed, ""
	case joining:
		return quorumJoining, ""
	case in.isAlive(member.Name):
		return quorumForeign, ""
	}
	return quorumOrphan, ""
}

// isAlive reports whether a member may be running on the Node with its name.
func (in QuorumInput) isAlive(name string) bool {
	node := in.State.Nodes[name]
	if name == "" || node == nil || in.State.PodOf(EtcdPod, name) == nil {
		return false
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return in.Now.Sub(c.LastTransitionTime.Time) < deadAfter
		}
	}
	return true
}

// link connects a Machine with a member.
type link struct {
	machine string
	member  uint64
}

// links are all connections from the evidence.
type links map[link]bool

func (l links) of(machine string) []uint64 {
	var out []uint64
	for k := range l {
		if k.machine == machine {
			out = append(out, k.member)
		}
	}
	slices.Sort(out)
	return out
}

// agree reports whether all evidence for a Machine identifies a single member, and that member no other Machine.
func (l links) agree(machine string) bool {
	of := l.of(machine)
	return len(of) == 1 && len(l.to(of[0])) == 1
}

func (l links) to(member uint64) []string {
	var out []string
	for k := range l {
		if k.member == member {
			out = append(out, k.machine)
		}
	}
	slices.Sort(out)
	return out
}

// links collects the evidence. Each kind of evidence only counts if it identifies one Machine and one member.
func (in QuorumInput) links() links {
	out := links{}
	for _, names := range []func(QuorumMachine, etcd.Member) bool{byNode, in.byProviderID, byPeerURL, byHostName} {
		kind := links{}
		for _, m := range in.Machines {
			for _, member := range in.State.Etcd.Members {
				if names(m, member) {
					kind[link{m.Name, member.ID}] = true
				}
			}
		}
		for k := range kind {
			if len(kind.of(k.machine)) == 1 && len(kind.to(k.member)) == 1 {
				out[k] = true
			}
		}
	}
	return out
}

func byNode(m QuorumMachine, member etcd.Member) bool { return m.Node != "" && m.Node == member.Name }

func (in QuorumInput) byProviderID(m QuorumMachine, member etcd.Member) bool {
	node := in.State.Nodes[member.Name]
	return node != nil && node.Spec.ProviderID != "" && slices.Contains(m.ProviderIDs, node.Spec.ProviderID)
}

func byPeerURL(m QuorumMachine, member etcd.Member) bool {
	return slices.ContainsFunc(member.PeerURLs, func(text string) bool {
		u, err := url.Parse(text)
		return err == nil && u.Hostname() != "" && slices.ContainsFunc(m.Addresses, func(a string) bool { return sameHost(a, u.Hostname()) })
	})
}

// sameHost compares IP addresses by value and names by text. Loopback addresses do not identify a host.
func sameHost(a, b string) bool {
	first, second := net.ParseIP(a), net.ParseIP(b)
	if first == nil || second == nil {
		return strings.EqualFold(a, b)
	}
	return first.Equal(second) && !first.IsLoopback() && !first.IsUnspecified()
}

func byHostName(m QuorumMachine, member etcd.Member) bool {
	return member.Name != "" && (member.Name == m.Name || slices.ContainsFunc(m.Addresses, func(a string) bool {
		short, _, _ := strings.Cut(a, ".")
		return net.ParseIP(a) == nil && (strings.EqualFold(a, member.Name) || strings.EqualFold(short, member.Name))
	}))
}
