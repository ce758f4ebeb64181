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
	"github.com/slipwayhq/slipway/internal/machines"
)

const (
	// joinGracePeriod is the time after the creation of its Node during which a Machine may still be starting its etcd
	// member. kubeadm adds the member before etcd starts, and images may have to be pulled.
	joinGracePeriod = 10 * time.Minute
	// orphanGracePeriod is the time after which a member without a Machine counts as orphaned if its Node is not ready.
	// Nodes are temporarily not ready when the kubelet restarts or the host is slow.
	orphanGracePeriod = time.Minute
)

// MatchInput is the input of [MatchMembers]. The KubeadmControlPlane controller matches members and Machines in each
// reconciliation, because a member must only be removed together with its own Machine, or if it has none.
type MatchInput struct {
	Now time.Time
	// Machines of the control plane. ProviderIDs are the provider IDs of their infrastructure machines, by Machine.
	Machines    machines.OwnedMachines
	ProviderIDs map[string]string
	// State is the observed state of the workload cluster.
	State State
}

// MemberMatching is the mapping between etcd members and Machines. Hooks, remediation, scaling and the conditions of
// the KubeadmControlPlane controller read it.
type MemberMatching struct {
	Members EtcdMembers
	// own contains the members by the name of their Machine. candidates contains the members that may run on a
	// Machine.
	own        map[string]EtcdMember
	candidates map[string][]EtcdMember
}

// MatchMembers maps the etcd members to Machines. The KubeadmControlPlane controller calls it for each snapshot.
func MatchMembers(in MatchInput) MemberMatching {
	found := in.State.Etcd.Members
	links := in.links()
	out := MemberMatching{own: map[string]EtcdMember{}, candidates: map[string][]EtcdMember{}}
	for _, m := range found {
		health, problem := healthOf(in.State.Etcd, m)
		out.Members = append(out.Members, EtcdMember{ID: m.ID, Name: m.Name, Learner: m.Learner, Health: health, Problem: problem})
	}
	in.eliminate(links)
	joining := slices.ContainsFunc(in.Machines, func(m machines.OwnedMachine) bool { return !links.agree(m.Name) && in.isJoining(m) })
	for i := range out.Members {
		out.Members[i].Class, out.Members[i].Machine = in.classify(found[i], links, joining)
	}
	for _, m := range in.Machines {
		out.attribute(in, m, links)
	}
	return out
}

// attribute records the member of a Machine, or its candidates.
func (out MemberMatching) attribute(in MatchInput, m machines.OwnedMachine, links links) {
	named := links.membersOf(m.Name)
	for _, member := range out.Members {
		switch {
		case member.Class == memberOfMachine && member.Machine == m.Name:
			out.own[m.Name] = member
		case member.Class == memberOfMachine:
		case slices.Contains(named, member.ID), !links.agree(m.Name) && len(links.machinesOf(member.ID)) == 0 && in.mayRun(m, member.Name):
			out.candidates[m.Name] = append(out.candidates[m.Name], member)
		}
	}
}

// MemberOf returns the member that runs on a Machine, or false if there is none or it is undetermined.
func (m MemberMatching) MemberOf(machine string) (EtcdMember, bool) {
	member, is := m.own[machine]
	return member, is
}

// Doubt describes why the member of a Machine is undetermined. It is empty if it is known which member, or that no
// member, runs on the Machine. The KubeadmControlPlane controller calls it before it removes the member of a deleted
// Machine.
func (m MemberMatching) Doubt(machine string) string {
	may := m.candidates[machine]
	if len(may) == 0 {
		return ""
	}
	var names []string
	for _, member := range may {
		names = append(names, member.Text())
	}
	return fmt.Sprintf("any of the etcd members without a Machine may run on it (%s): correct spec.providerID of its Node, or its addresses, "+
		"or remove the member from etcd if it is not needed", strings.Join(names, "; "))
}

// HasMember reports whether a member runs, or may run, on a Machine.
func (m MemberMatching) HasMember(machine string) bool {
	_, is := m.own[machine]
	return is || len(m.candidates[machine]) > 0
}

// Obstacle returns the reason why a Machine cannot be removed now together with its member. It is empty if the quorum
// remains for each member that may run on the Machine.
func (m MemberMatching) Obstacle(machine string) string {
	may := m.candidates[machine]
	if member, is := m.own[machine]; is {
		may = []EtcdMember{member}
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

// Orphans returns the orphaned members, sorted by ID. The KubeadmControlPlane controller removes them, one at a time.
func (m MemberMatching) Orphans() EtcdMembers {
	return slices.DeleteFunc(slices.Clone(m.Members), func(member EtcdMember) bool { return member.Class != memberOrphaned })
}

// eliminate links the last remaining member with the last remaining Machine, if the member may run on the Machine.
func (in MatchInput) eliminate(l links) {
	free := slices.DeleteFunc(slices.Clone(in.State.Etcd.Members), func(m etcd.Member) bool { return len(l.machinesOf(m.ID)) > 0 })
	if len(free) != 1 {
		return
	}
	member := free[0]
	left := slices.DeleteFunc(slices.Clone(in.Machines), func(m machines.OwnedMachine) bool { return l.agree(m.Name) || !in.mayRun(m, member.Name) })
	if len(left) != 1 || len(l.membersOf(left[0].Name)) > 0 {
		return
	}
	node := in.State.Nodes[member.Name]
	switch m := left[0]; {
	case member.Name != "" && m.Status.NodeRef.IsDefined(): // the Machine has another Node
	case node != nil && node.CreationTimestamp.Time.Before(m.CreationTimestamp.Time): // the Node is older than the Machine
	default:
		l[link{m.Name, member.ID}] = true
	}
}

// isBootstrapped reports whether bootstrap data exists, so that the Machine may have joined etcd.
func isBootstrapped(m machines.OwnedMachine) bool {
	return m.Spec.Bootstrap.DataSecretName != nil || m.Status.NodeRef.IsDefined()
}

// isJoining reports whether a Machine without a member may be about to get one.
func (in MatchInput) isJoining(m machines.OwnedMachine) bool {
	return !m.Deleted && isBootstrapped(m) && (!m.Status.NodeRef.IsDefined() || in.isYoung(m.Status.NodeRef.Name))
}

// isYoung reports whether a Node is missing or so new that its Machine may still be starting its member.
func (in MatchInput) isYoung(name string) bool {
	node := in.State.Nodes[name]
	return node == nil || in.Now.Sub(node.CreationTimestamp.Time) < joinGracePeriod
}

// mayRun reports whether a Machine may run a member without any evidence. A member without a name belongs to a
// Machine that is joining.
func (in MatchInput) mayRun(m machines.OwnedMachine, member string) bool {
	switch {
	case !isBootstrapped(m):
		return false
	case member == "":
		return in.isYoung(m.Status.NodeRef.Name)
	}
	return !in.isOfItsNode(m)
}

// isOfItsNode reports whether the Node of a Machine belongs to a control plane, so that its member has the Node's
// name. A reference to a worker or to a missing Node proves nothing.
func (in MatchInput) isOfItsNode(m machines.OwnedMachine) bool {
	return m.Status.NodeRef.IsDefined() && in.State.Nodes[m.Status.NodeRef.Name] != nil && in.State.PodOf(etcdPod, m.Status.NodeRef.Name) != nil
}

// classify returns the class of a member and the Machine that runs it.
func (in MatchInput) classify(member etcd.Member, l links, joining bool) (MemberClass, string) {
	switch to := l.machinesOf(member.ID); {
	case len(to) == 1 && len(l.membersOf(to[0])) == 1:
		return memberOfMachine, to[0]
	case len(to) > 0:
		return memberDisputed, ""
	case joining:
		return memberJoining, ""
	case in.isAlive(member.Name):
		return memberForeign, ""
	}
	return memberOrphaned, ""
}

// isAlive reports whether a member may be running on the Node with its name.
func (in MatchInput) isAlive(name string) bool {
	node := in.State.Nodes[name]
	if name == "" || node == nil || in.State.PodOf(etcdPod, name) == nil {
		return false
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return in.Now.Sub(c.LastTransitionTime.Time) < orphanGracePeriod
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

func (l links) membersOf(machine string) []uint64 {
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
	of := l.membersOf(machine)
	return len(of) == 1 && len(l.machinesOf(of[0])) == 1
}

func (l links) machinesOf(member uint64) []string {
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
func (in MatchInput) links() links {
	out := links{}
	for _, names := range []func(machines.OwnedMachine, etcd.Member) bool{byNode, in.byProviderID, byPeerURL, byHostName} {
		kind := links{}
		for _, m := range in.Machines {
			for _, member := range in.State.Etcd.Members {
				if names(m, member) {
					kind[link{m.Name, member.ID}] = true
				}
			}
		}
		for k := range kind {
			if len(kind.membersOf(k.machine)) == 1 && len(kind.machinesOf(k.member)) == 1 {
				out[k] = true
			}
		}
	}
	return out
}

// byNode, byProviderID, byPeerURL and byHostName are the kinds of evidence; see the table in the package documentation.
func byNode(m machines.OwnedMachine, member etcd.Member) bool {
	return m.Status.NodeRef.IsDefined() && m.Status.NodeRef.Name == member.Name
}

func (in MatchInput) byProviderID(m machines.OwnedMachine, member etcd.Member) bool {
	node := in.State.Nodes[member.Name]
	if node == nil || node.Spec.ProviderID == "" {
		return false
	}
	return node.Spec.ProviderID == m.Spec.ProviderID || node.Spec.ProviderID == in.ProviderIDs[m.Name]
}

func byPeerURL(m machines.OwnedMachine, member etcd.Member) bool {
	return slices.ContainsFunc(member.PeerURLs, func(text string) bool {
		u, err := url.Parse(text)
		return err == nil && u.Hostname() != "" && slices.ContainsFunc(m.Status.Addresses, func(a clusterv1.MachineAddress) bool { return sameHost(a.Address, u.Hostname()) })
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

func byHostName(m machines.OwnedMachine, member etcd.Member) bool {
	return member.Name != "" && (member.Name == m.Name || slices.ContainsFunc(m.Status.Addresses, func(a clusterv1.MachineAddress) bool {
		short, _, _ := strings.Cut(a.Address, ".")
		return net.ParseIP(a.Address) == nil && (strings.EqualFold(a.Address, member.Name) || strings.EqualFold(short, member.Name))
	}))
}
