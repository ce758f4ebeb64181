// Package store stores the keys of many small clusters in memory, and in one file per cluster. It replaces etcd below
// the storage layer of k8s.io/apiserver. A [Keyspace] is the etcd of one cluster: keys with revisions, transactions on
// one key, and a short history for watches and paged lists. The context of a request selects its keyspace ([WithKeyspace]).
// Files are written in the background: a killed process loses the last fraction of a second, and never leaves a
// partially written file. The package does not decode objects or interpret keys. Start with keyspace.go, then client.go
// (called by k8s.io/apiserver) and files.go.
package store
