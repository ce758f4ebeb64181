package etcd

import (
	"context"
)

// Member is a member of an etcd cluster.
type Member struct {
	ID uint64
	// Name is that of the member's Node where kubeadm made it; empty while the member has not started.
	Name string
	// PeerURLs and ClientURLs are where the member says that it listens.
	PeerURLs, ClientURLs []string
	// Learner tells that the member has no vote yet.
	Learner bool
	// Alarms are those that are raised for it, for example NOSPACE and CORRUPT, sorted.
	Alarms []string
}

// Status is what a member says about itself.
type Status struct {
	// ID is the member's, ClusterID that of its cluster, Leader that of the leader as it sees it; 0: it sees none.
	ID, ClusterID, Leader uint64
	// Version of etcd.
	Version string
	// DBSize is the size of its database in bytes.
	DBSize int64
	// Learner tells that the member has no vote yet.
	Learner bool
	// Errors are what it says is wrong with it, sorted.
	Errors []string
	// Members are those that it knows, without alarms, by ID. They can differ from the cluster's while it lags behind.
	Members []Member
}

// Cluster is an etcd cluster. Its methods may be called at the same time. Their errors are faults: Unreachable where no
// member answers in time or the cluster has no leader, Invalid where it refuses.
type Cluster interface {
	// Members returns all members as the cluster has agreed on them, by ID, with their alarms. It needs a quorum.
	Members(ctx context.Context) ([]Member, error)
	// Status asks the member on a Node. It needs no quorum.
	Status(ctx context.Context, node string) (Status, error)
	// MoveLeader makes a member the leader. If it is already, nothing happens.
	MoveLeader(ctx context.Context, to uint64) error
	// RemoveMember removes a member; another one is asked to do so. One that is not a member is no error.
	RemoveMember(ctx context.Context, id uint64) error
	// Close closes all connections. Calls after it fail.
	Close() error
}
