package etcd

import (
	"context"
)

// Member is a member of an etcd cluster.
type Member struct {
	ID uint64
	// Name is the name of the member's Node if kubeadm created the member. It is empty until the member has started.
	Name string
	// PeerURLs are the URLs at which the member advertises itself to other members.
	PeerURLs []string
	// Learner means that the member does not vote yet.
	Learner bool
	// Alarms are the active alarms of the member, for example NOSPACE and CORRUPT, sorted.
	Alarms []string
}

// Status is the status that a member reports.
type Status struct {
	// ID is the ID of the member, ClusterID the ID of its cluster, and Leader the ID of the leader as seen by the
	// member, or 0 if it sees none.
	ID, ClusterID, Leader uint64
	// Version of etcd.
	Version string
	// Learner means that the member does not vote yet.
	Learner bool
	// Errors are the errors reported by the member, sorted.
	Errors []string
	// Members are the members known to this member, sorted by ID and without alarms. A member that lags behind may
	// return an outdated list.
	Members []Member
}

// Cluster is an etcd cluster. The KubeadmControlPlane controller uses it: each read of a workload cluster reads Members
// and the Status of each member, and a deleted Machine's member is removed with MoveLeader and RemoveMember. The
// methods are safe for concurrent use. Errors are faults: Unreachable if no member responds in time or the cluster has
// no leader, Invalid if etcd rejects the call.
type Cluster interface {
	// Members returns all members of the cluster, sorted by ID, with their alarms. It requires quorum.
	Members(ctx context.Context) ([]Member, error)
	// Status reads the status of the member on a Node. It does not require quorum.
	Status(ctx context.Context, node string) (Status, error)
	// MoveLeader transfers leadership to a member. It does nothing if the member is already the leader.
	MoveLeader(ctx context.Context, to uint64) error
	// RemoveMember removes a member by calling another member. It returns no error if the member does not exist.
	RemoveMember(ctx context.Context, id uint64) error
	// Close closes all connections. Later calls fail.
	Close() error
}
