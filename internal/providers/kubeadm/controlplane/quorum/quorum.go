package quorum

import "fmt"

// Member is a member of an etcd cluster.
type Member struct {
	// Name of the member, that of its Node.
	Name string
	// Healthy members answer, know a leader, and have no alarm.
	Healthy bool
	// Learner members have no vote yet.
	Learner bool
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
	return ms.count(func(m Member) bool { return !m.Learner && m.Healthy })
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

// HasQuorum reports whether enough members are healthy for the cluster to change anything.
func (ms Members) HasQuorum() bool { return ms.Healthy() >= Of(ms.Voters()) }

// Without are the members but for the one of that name.
func (ms Members) Without(name string) Members {
	var out Members
	for _, m := range ms {
		if m.Name != name {
			out = append(out, m)
		}
	}
	return out
}

// AllowsRemoval reports whether a member may be removed: the members agree on it now, and have a quorum afterwards. One that is no
// member may go as long as there is a quorum.
func (ms Members) AllowsRemoval(name string) bool {
	rest := ms.Without(name)
	return ms.HasQuorum() && rest.Voters() > 0 && rest.HasQuorum()
}

// Removal says what a removal would lead to, for a message.
func (ms Members) Removal(name string) string {
	rest := ms.Without(name)
	if !ms.HasQuorum() {
		return fmt.Sprintf("etcd has no quorum: %d of %d members healthy, %d needed", ms.Healthy(), ms.Voters(), Of(ms.Voters()))
	}
	return fmt.Sprintf("etcd would have %d of %d members healthy, %d needed", rest.Healthy(), rest.Voters(), Of(rest.Voters()))
}
