package quorum

import "fmt"

// Health of a member of etcd, as far as it is known.
type Health string

// The zero value is that of a member of which nothing is known.
const (
	Unknown   Health = ""
	Healthy   Health = "Healthy"
	Unhealthy Health = "Unhealthy"
)

// Class of a member: which Machine runs it, or why none does.
type Class string

// The classes, see the documentation of the package.
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
	// Name of the member, which is the name of its Node; empty: it has not started.
	Name string
	// Learner members have no vote yet.
	Learner bool
	// Health of the member, and why it is not Healthy.
	Health  Health
	Problem string
	// Class, and the name of the Machine that runs it; empty: none is known.
	Class   Class
	Machine string
}

// Text names the member in a sentence: by its ID if it has no name yet.
func (m Member) Text() string {
	if m.Name == "" {
		return fmt.Sprintf("%x, which has not started", m.ID)
	}
	return m.Name
}

// Members are all members of an etcd cluster.
type Members []Member

// Of is how many of so many voters have to agree.
func Of(voters int) int { return voters/2 + 1 }

// Voters is how many members have a vote.
func (ms Members) Voters() int {
	return ms.count(func(m Member) bool { return !m.Learner })
}

// Healthy is how many members with a vote are healthy.
func (ms Members) Healthy() int {
	return ms.count(func(m Member) bool { return !m.Learner && m.Health == Healthy })
}

// Unknown is of how many members with a vote nothing is known.
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

// HasQuorum reports whether enough members may be healthy for the cluster to change anything: it has lost its quorum only if too many
// are known to be unhealthy.
func (ms Members) HasQuorum() bool { return ms.Healthy()+ms.Unknown() >= Of(ms.Voters()) }

// Without are the members but for the one with that ID.
func (ms Members) Without(id uint64) Members {
	var out Members
	for _, m := range ms {
		if m.ID != id {
			out = append(out, m)
		}
	}
	return out
}

// AllowsRemoval reports whether a member may be removed: the members can agree on it now, and enough of the others are known to be
// healthy for a quorum afterwards. One that is no member may go as long as there is a quorum.
func (ms Members) AllowsRemoval(id uint64) bool {
	rest := ms.Without(id)
	return ms.HasQuorum() && rest.Voters() > 0 && rest.Healthy() >= Of(rest.Voters())
}

// Removal is what a removal would lead to, for a message.
func (ms Members) Removal(id uint64) string {
	if !ms.HasQuorum() {
		return fmt.Sprintf("etcd has no quorum: %s, %d needed", ms.Counts(), Of(ms.Voters()))
	}
	rest := ms.Without(id)
	return fmt.Sprintf("etcd would have %s, %d needed", rest.Counts(), Of(rest.Voters()))
}

// Counts is how many members are healthy, for a message.
func (ms Members) Counts() string {
	if n := ms.Unknown(); n > 0 {
		return fmt.Sprintf("%d of %d members healthy and %d unknown", ms.Healthy(), ms.Voters(), n)
	}
	return fmt.Sprintf("%d of %d members healthy", ms.Healthy(), ms.Voters())
}
