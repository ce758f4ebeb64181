// Package snapshots implements the EtcdSnapshotPolicy controller. It takes etcd snapshots of the Clusters selected by a
// policy when they are due or requested, one per namespace at a time, and removes snapshots that exceed the policy's
// retention. It reaches the etcd of hosted control planes on this host and of control planes on kubeadm Machines
// ([EtcdConnector]). Package internal/snapshots defines schedules, stores and the format of snapshots; packages
// internal/hosted and internal/local/machine restore them. The controller never changes etcd, and it only uses folders
// and endpoints that the operator's configuration allows. Package manager adds the controller.
//
// The store is the source of truth: after a crash, a stored snapshot is not taken again, and an incomplete one
// is:
//
//	schedule, annotation ─► due? ─► read the store ─► take (background job) ─► remove by count or age
package snapshots
