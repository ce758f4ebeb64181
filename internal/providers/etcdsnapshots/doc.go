// Package etcdsnapshots is the EtcdSnapshotPolicy controller.
//
// Does: takes snapshots of the etcd of the Clusters of a policy when they are due or asked for, one of a namespace at a time,
// and removes those that the policy does not keep. Which snapshots there are is what their store says: after a crash, a
// snapshot that is there is not taken twice, and half of one is taken again.
//
//	schedule, annotation ─► due? ─► what has the store? ─► take (beside the controller) ─► remove what is too many or too old
//
// Owns: the snapshots in a store below the folders of the policy's Clusters, and the status of EtcdSnapshotPolicies.
//
// Never: restores a snapshot (package hosted does), changes etcd, or uses a folder or endpoint that the operator does not allow.
//
// Read first: [Snapshot], [Decide].
package etcdsnapshots
