// Package data implements the commands that save, move and restore data. They have two subjects: the Cluster API
// objects of a management cluster, and the etcd data of a workload cluster's control plane. Each command parses its
// flags, prints or confirms the plan of the package that does the work, and prints the result. Commands that replace
// the data of a cluster share the confirmation of [term.ConfirmFlags].
//
// The commands, and the packages that do their work:
//
//	backup                operate/backup: saves the objects of a management cluster to a file
//	restore               operate/backup: creates the objects of a backup
//	move                  clusterctl/move: moves objects to another management cluster
//	snapshots list, take  operate/etcdrecovery: lists the etcd snapshots of policies, and takes one
//	restore controlplane  operate/etcdrecovery: restores an etcd snapshot; the controllers do the work
//	recover controlplane  operate/etcdrecovery: rebuilds etcd without quorum from a surviving member or a snapshot
//	etcd-data (hidden)    controlplane/etcd: creates an etcd data directory from a snapshot
//
// The scripts of kubeadm/recovery run etcd-data on the member's node: a snapshot is tenant data, and a damaged one can
// crash the process that opens it.
package data
