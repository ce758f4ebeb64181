// Package members connects to the etcd members of workload clusters.
//
// Does: opens connections to the static Pods etcd-<node> through the API server of their cluster, with a client certificate that the
// etcd authority of the cluster (Secret <cluster>-etcd) signs, and keeps them while the same Nodes are asked for ([Connections.Etcd]).
//
// Never: decides anything about a member; connects to an external etcd.
//
// Read first: [Connections].
package members
