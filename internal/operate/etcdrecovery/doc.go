// Package etcdrecovery takes, lists and restores etcd snapshots of workload clusters, and recovers a control plane
// whose etcd has lost its quorum, on behalf of a user. A [SnapshotClient] requests a snapshot from an
// EtcdSnapshotPolicy ([SnapshotClient.Take]), computes the data that a restore would lose ([SnapshotClient.Prepare]),
// and requests a restore and waits for it ([SnapshotClient.Run]); [ListSnapshots] reads the status of the policies. A
// [Recoverer] requests a survey of the remaining etcd members from the control plane, selects the member with the most
// recent data, and reports which data would be preserved, lost, and which is unknown ([Recoverer.Prepare]); then it
// requests the recovery and follows it until the control plane is restored ([Recoverer.Run]). The package only sets
// annotations and reads status: the controllers access the stores, the etcd members, the nodes and the data
// directories, on the host that has them. The commands are `slipway snapshots`, `slipway restore controlplane` and
// `slipway recover controlplane`.
package etcdrecovery
