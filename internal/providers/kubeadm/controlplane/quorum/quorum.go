package quorum

import "fmt"

// Health of an etcd member.
type Health string

// The health states. The zero value is Unknown.
const (
	Unknown   Health = ""
	Healthy   Health = "Healthy"
	Unhealthy Health = "Unhealthy"
)

// Class of a member: the Machine that runs it, or the reason why there is none.
type Class string

// The classes; see the package documentation.
const (
	OfMachine Class = "OfMachine"
	Joining   Class = "Joining"
	Disputed  Class = "Disputed"
	Foreign   Class = "Foreign"
	Orphan    Class = "Orphan"
)

// Member is a member of an etcd cluster.
type Member struct {
	ID uint64
	// Name of the member, which is the name of its Node. It is empty if the member has not started.
	Name string
	// Learner members do not vote yet.
	Learner bool
	// Health of the member, and the reason if it is not Healthy.
	Health  Health
	Problem string
	// Class, and the name of the Machine that runs the member, or empty if unknown.
	Class   Class
	Machine string
}

// Text returns the name of the member for a message, or its ID if it has no name yet.
func (m Member) Text() string {
	if m.Name == "" {
		return fmt.Sprintf("%x, which has not started", m.ID)
	}
	return m.Name
}

// Members are all members of an etcd cluster.
type Members []Member

// Size returns the quorum for a number of voters.
func Size(voters int) int { return voters/2 + 1 }

// Voters returns the number of voting members.
func (ms Members) Voters() int {
	return ms.count(func(m Member) bool { return !m.Learner })
}

// Healthy returns the number of healthy voting members.
func (ms Members) Healthy() int {
	return ms.count(func(m Member) bool { return !m.Learner && m.Health == Healthy })
}

// Unknown returns the number of voting members with unknown health.
func (ms Members) Unknown() int {
	return ms.count(func(m Member) bool { return !m.Learner && m.Health == Unknown })
}

func (ms Members) count(is func(Member) bool) int {
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
func (ms Members) HasQuorum() bool { return ms.Healthy()+ms.Unknown() >= Size(ms.Voters()) }

// Without returns the members without the one with the given ID.
func (ms Members) Without(id uint64) Members {
	var out Members
	for _, m := range ms {
		if m.ID != id {
			out = append(out, m)
		}
	}
	return out
}

// AllowsRemoval reports whether a member may be removed: etcd has quorum now, and enough of the remaining members are
// known to be healthy for a quorum afterwards. For an ID that is not a member, it reports whether enough of the
// present members are known to be healthy.
func (ms Members) AllowsRemoval(id uint64) bool {
	rest := ms.Without(id)
	return ms.HasQuorum() && rest.Voters() > 0 && rest.Healthy() >= Size(rest.Voters())
}

// Removal describes the result of a removal, for a message.
func (ms Members) Removal(id uint64) string {
	if !ms.HasQuorum() {
		return fmt.Sprintf("etcd has no quorum: %s, %d needed", ms.Counts(), Size(ms.Voters()))
	}
	rest := ms.Without(id)
	return fmt.Sprintf("etcd would have %s, %d needed", rest.Counts(), Size(rest.Voters()))
}

// Counts describes how many members are healthy, for a message.
func (ms Members) Counts() string {
	if n := ms.Unknown(); n > 0 {
		return fmt.Sprintf("%d of %d members healthy and %d unknown", ms.Healthy(), ms.Voters(), n)
	}
	return fmt.Sprintf("%d of %d members healthy", ms.Healthy(), ms.Voters())
}
