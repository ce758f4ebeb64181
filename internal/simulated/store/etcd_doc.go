// Package etcd simulates the etcd of a simulated cluster whose control plane runs on simulated Machines. It maintains
// the members, the leader, the alarms and the quorum, and implements the calls that control plane controllers make:
// listing members, reading status and alarms, removing a member, and moving the leader. Members speak the etcd protocol
// with certificates of the cluster's etcd certificate authority, on connections that the caller passes to
// [Cluster.Serve]. The state is stored in one note with the objects of the cluster. The objects of the API server are
// not stored here. Start with [EtcdCluster], then serve.go.
package store
