// Package etcdsnapshots implements the EtcdSnapshotPolicy controller. It takes etcd snapshots of the Clusters
// selected by a policy when they are due or requested, one per namespace at a time, and removes snapshots that exceed
// the policy's retention. The store is the source of truth: after a crash, a stored snapshot is not taken again, and
// an incomplete one is.
//
//	schedule, annotation ─► due? ─► read the store ─► take (background job) ─► remove by count or age
//
// The controller writes the folders of the policy's Clusters in the store, and the status of EtcdSnapshotPolicies. It
// never changes etcd, and it only uses folders and endpoints that the operator's configuration allows. Snapshots are
// restored by package hosted.
package snapshots
