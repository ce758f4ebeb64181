// Package etcd manages the etcd members of a workload cluster through etcd's own client, for the KubeadmControlPlane
// controller ([Cluster]) and for the EtcdSnapshotPolicy controller, which takes snapshots ([Connection]). It reads
// membership, alarms and the status of members, transfers leadership, removes members, and streams snapshots. The
// caller provides the network connections ([Config.Dial]). Each member has one connection, which is opened by the first
// call, shared by later calls and closed when idle. Calls have timeouts, and the size of responses is limited. The
// KubeadmControlPlane controller decides whether a member may be removed, and a removal is never sent to the member
// that is being removed. Start reading at [Cluster] and [Connect].
package etcd
