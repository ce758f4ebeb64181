package workload

import (
	"slices"

	"github.com/slipwayhq/slipway/internal/machines"
)

// NextLeader returns the member that becomes the leader before another member is removed: the healthy member of the
// newest remaining Machine.
func NextLeader(etcd QuorumMatching, all machines.Members, removed uint64) (QuorumMember, bool) {
	stay := slices.Clone(all)
	slices.SortStableFunc(stay, func(a, b machines.Member) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for _, m := range stay {
		member, is := etcd.Of(m.Name)
		if is && member.ID != removed && !m.Deleted && !member.Learner && member.Health == QuorumHealthy {
			return member, true
		}
	}
	return QuorumMember{}, false
}
