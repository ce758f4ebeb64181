// Package members connects to the etcd members of workload clusters. [Connections.Etcd] connects to the static Pods
// etcd-<node> through the API server of their cluster, with a client certificate signed by the etcd CA of the cluster
// (Secret <cluster>-etcd). Connections are reused as long as the set of Nodes remains the same. External etcd
// clusters are not supported.
package workload
