// Package snapshots implements the snapshots command. It lists the etcd snapshots that policies have stored, and takes
// a snapshot of a cluster (package clusterctl/snapshot). The command "restore controlplane" restores snapshots.
package data
