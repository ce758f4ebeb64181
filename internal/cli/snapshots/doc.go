// Package snapshots is the verb "snapshots".
//
// Does: lists the snapshots of etcd that policies have stored, and takes one of a cluster.
//
// Never: finds or asks for snapshots itself; package clusterctl/snapshot does. Restores one; the verb "restore controlplane" does.
//
// Read first: Command.
package snapshots
