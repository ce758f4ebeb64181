// Package store keeps the keys of many small clusters in memory, and in one file for each.
//
// Does: plays etcd for the storage of k8s.io/apiserver, which does everything above keys and revisions. A [Keyspace]
// is the etcd of one cluster: keys with revisions, transactions on one key, a short history for watches and paged
// lists. Which keyspace a request is about is in its context ([Into]). Files are written behind: a process that is
// killed loses the last fraction of a second and never finds half a file.
//
// Owns: the files of its folder.
//
// Never: knows objects, or what a key means.
//
// Read first: keyspace.go, then client.go (what k8s.io/apiserver calls), then files.go.
package store
