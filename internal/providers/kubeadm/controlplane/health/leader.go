package health

import (
	"slices"

	"github.com/slipwayhq/slipway/internal/etcd"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/workload"
)

// NextLeader is the member of etcd that leads next, instead of that of a Node: a healthy one of the newest Machine that stays.
func NextLeader(e workload.Etcd, all machines.Members, not string) (etcd.Member, bool) {
	stay := slices.Clone(all)
	slices.SortStableFunc(stay, func(a, b machines.Member) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for _, m := range stay {
		node := m.Status.NodeRef.Name
		member, is := e.Member(node)
		if is && node != not && !m.Deleted && !member.Learner && MemberProblem(e, node) == "" {
			return member, true
		}
	}
	return etcd.Member{}, false
}
