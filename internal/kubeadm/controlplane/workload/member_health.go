package workload

import (
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/slipwayhq/slipway/internal/kubeadm/etcd"
)

// healthOf evaluates a member from its own status and from the reports of the other members. [MatchMembers] calls it
// for each member; the condition EtcdMemberHealthy reports the result, and a member that is not healthy does not count
// when another member is to be removed. A member without a path to reach it is unknown, not unhealthy.
func healthOf(e Etcd, member etcd.Member) (MemberHealth, string) {
	status, asked := e.Statuses[member.Name]
	switch {
	case len(member.Alarms) > 0:
		return MemberUnhealthy, alarmsText(member.Alarms)
	case member.Learner || asked && status.Learner:
		return MemberUnhealthy, "Waiting for the etcd member to be promoted from learner"
	case member.Name == "":
		return MemberUnhealthy, "Waiting for the etcd member to start"
	case !asked:
		return memberUnknown, "The etcd member cannot be reached: its Node, or the static Pod of etcd on it, does not exist"
	case status.Problem != "":
		return MemberUnhealthy, status.Problem
	case status.Leader == 0:
		return MemberUnhealthy, "The etcd member has no leader"
	case len(status.Errors) > 0:
		return MemberUnhealthy, "The etcd member reports: " + strings.Join(status.Errors, ", ")
	case status.ClusterID != e.ClusterID():
		return MemberUnhealthy, "The etcd member belongs to another etcd cluster than the others"
	case !sameMembers(status.Members, e.Members):
		return MemberUnhealthy, "The etcd member has another member list than the others"
	}
	return MemberHealthy, ""
}

// alarmsText lists the alarms of a member, with instructions for a full database.
func alarmsText(alarms []string) string {
	text := "Etcd reports the alarms " + strings.Join(alarms, ", ")
	if slices.Contains(alarms, pb.AlarmType_NOSPACE.String()) {
		text += ": the database has reached its quota, and nothing can be written; delete objects that are not needed, compact etcd, defragment each member, then disarm the alarm"
	}
	return text
}
