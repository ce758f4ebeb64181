package workload

import (
	"fmt"
	"slices"

	"github.com/slipwayhq/slipway/internal/machines"
)

// MemberHealth of an etcd member. This file has the rules about etcd's quorum: the KubeadmControlPlane controller
// removes a member only if [EtcdMembers.AllowsRemoval] permits it.
type MemberHealth string

// The health states. The zero value is Unknown.
const (
	memberUnknown   MemberHealth = ""
	MemberHealthy   MemberHealth = "Healthy"
	MemberUnhealthy MemberHealth = "Unhealthy"
)

// MemberClass of a member: the Machine that runs it, or the reason why there is none. [MatchMembers] determines it, see
// the table in the package documentation.
type MemberClass string

// The classes; see the package documentation.
const (
	memberOfMachine MemberClass = "OfMachine"
	memberJoining   MemberClass = "Joining"
	memberDisputed  MemberClass = "Disputed"
	memberForeign   MemberClass = "Foreign"
	memberOrphaned  MemberClass = "Orphan"
)

// EtcdMember is a member of an etcd cluster. [MatchMembers] creates it for each member that was read.
type EtcdMember struct {
	ID uint64
	// Name of the member, which is the name of its Node. It is empty if the member has not started.
	Name string
	// Learner members do not vote yet.
	Learner bool
	// Health of the member, and the reason if it is not Healthy.
	Health  MemberHealth
	Problem string
	// Class, and the name of the Machine that runs the member, or empty if unknown.
	Class   MemberClass
	Machine string
}

// Text returns the name of the member for a message, or its ID if it has no name yet. Messages, actions and events name
// a member by it.
func (m EtcdMember) Text() string {
	if m.Name == "" {
		return fmt.Sprintf("%x, which has not started", m.ID)
	}
	return m.Name
}

// EtcdMembers are all members of an etcd cluster.
type EtcdMembers []EtcdMember

// QuorumSize returns the quorum for a number of voters. The KubeadmControlPlane controller also computes with it
// whether the quorum is lost.
func QuorumSize(voters int) int { return voters/2 + 1 }

// Voters returns the number of voting members.
func (ms EtcdMembers) Voters() int {
	return ms.count(func(m EtcdMember) bool { return !m.Learner })
}

// Healthy returns the number of healthy voting members.
func (ms EtcdMembers) Healthy() int {
	return ms.count(func(m EtcdMember) bool { return !m.Learner && m.Health == MemberHealthy })
}

// Unknown returns the number of voting members with unknown health.
func (ms EtcdMembers) Unknown() int {
	return ms.count(func(m EtcdMember) bool { return !m.Learner && m.Health == memberUnknown })
}

func (ms EtcdMembers) count(is func(EtcdMember) bool) int {
	n := 0
	for _, m := range ms {
		if is(m) {
			n++
		}
	}
	return n
}

// HasQuorum reports whether enough members may be healthy for a quorum. The quorum only counts as lost if too many
// members are known to be unhealthy.
func (ms EtcdMembers) HasQuorum() bool { return ms.Healthy()+ms.Unknown() >= QuorumSize(ms.Voters()) }

// Without returns the members without the one with the given ID.
func (ms EtcdMembers) Without(id uint64) EtcdMembers {
	return slices.DeleteFunc(slices.Clone(ms), func(m EtcdMember) bool { return m.ID == id })
}

// AllowsRemoval reports whether a member may be removed: etcd has quorum now, and enough of the remaining members are
// known to be healthy for a quorum afterwards. For an ID that is not a member, it reports whether enough of the
// present members are known to be healthy. The KubeadmControlPlane controller calls it for orphaned members, and
// [MemberMatching.Obstacle] for members of Machines.
func (ms EtcdMembers) AllowsRemoval(id uint64) bool {
	rest := ms.Without(id)
	return ms.HasQuorum() && rest.Voters() > 0 && rest.Healthy() >= QuorumSize(rest.Voters())
}

// Removal describes the result of a removal, for a message. [MemberMatching.Obstacle] calls it.
func (ms EtcdMembers) Removal(id uint64) string {
	if !ms.HasQuorum() {
		return fmt.Sprintf("etcd has no quorum: %s, %d needed", ms.Counts(), QuorumSize(ms.Voters()))
	}
	rest := ms.Without(id)
	return fmt.Sprintf("etcd would have %s, %d needed", rest.Counts(), QuorumSize(rest.Voters()))
}

// Counts describes how many members are healthy, for a message.
func (ms EtcdMembers) Counts() string {
	if n := ms.Unknown(); n > 0 {
		return fmt.Sprintf("%d of %d members healthy and %d unknown", ms.Healthy(), ms.Voters(), n)
	}
	return fmt.Sprintf("%d of %d members healthy", ms.Healthy(), ms.Voters())
}

// NextLeader returns the member that becomes the leader before another member is removed: the healthy member of the
// newest remaining Machine. The KubeadmControlPlane controller calls it if the member to remove is the leader.
func NextLeader(etcd MemberMatching, all machines.OwnedMachines, removed uint64) (EtcdMember, bool) {
	stay := slices.Clone(all)
	slices.SortStableFunc(stay, func(a, b machines.OwnedMachine) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for _, m := range stay {
		member, is := etcd.MemberOf(m.Name)
		if is && member.ID != removed && !m.Deleted && !member.Learner && member.Health == MemberHealthy {
			return member, true
		}
	}
	return EtcdMember{}, false
}
