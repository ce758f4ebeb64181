// Package store stores the state of simulated clusters for package simulated. A [Store] has the keys of many small
// clusters in memory, and in one file per cluster; it replaces etcd below the storage layer of k8s.io/apiserver. A
// [Keyspace] contains the keys of one cluster: values with revisions, transactions on one key, and a short history for
// watches and paged lists. The context of a request selects its keyspace ([WithKeyspace]); [NewClient] returns the etcd
// client that k8s.io/apiserver calls. Files are written in the background: a killed process loses the last fraction of
// a second, and never leaves a partially written file. The package does not decode objects or interpret keys.
//
// An [EtcdCluster] simulates the etcd of a cluster whose control plane runs on simulated Machines. It stores no keys:
// it maintains the members, the leader, the alarms and the quorum in one note with the objects of the cluster, and
// implements the calls that control plane controllers make: listing members, reading status and alarms, removing and
// promoting a member, and moving the leader. Members speak the etcd protocol with certificates of the cluster's etcd
// certificate authority, on connections that the caller passes to [EtcdCluster.Serve].
package store
