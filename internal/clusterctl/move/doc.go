// Package move moves the objects of workload clusters from one management cluster to another (`slipway move`), exports
// them to files ([ToDirectory]), and restores them from files ([FromDirectory]), also for package operate/backup. A
// move reads and selects the objects (package graph), checks both management clusters, and computes a [Plan] that it
// either describes or executes ([Move.Run]). Nothing is paused before all checks have passed. An object is never
// deleted unless it exists in the other management cluster. Status is not moved, and workload clusters are not
// modified. Resources on the host of a management cluster (processes, containers, networks) are transferred if both
// management clusters are on the same host, or recreated if their data is transferred; otherwise the move is rejected.
//
// The progress is recorded in a journal, a ConfigMap in both management clusters, so that the move can be continued or
// rolled back after an interruption at any point. A tenant may be able to write the journal, so it is not trusted for
// objects outside of the namespace, nor for resources on the host. The phases are:
//
//	nothing ─► pausing ─► creating ─► deleting ─► resuming ─► nothing
//	              │           │           │
//	              └───────────┴───────────┴─► reverting ─► nothing
//
// If the data of hosted control planes is transferred, the following phases are between creating and deleting. Once the
// source starts to delete, such a move cannot be rolled back, only reversed with another move:
//
//	creating ─► probing ─► saving ─► restoring ─► deleting
//	               └──────────┴──────────┴─► reverting
//
//	pausing    pause Clusters and ClusterClasses at the source
//	creating   create their objects at the target; if data is transferred, read them back and compare
//	probing    check that the target can start the control planes and read the snapshots
//	saving     quiesce the control planes at the source, and take final snapshots
//	restoring  stop the control planes at the source, and start them at the target
//	deleting   compare the target with the source, then delete the objects at the source
//	resuming   the source is empty: resume the objects at the target
//	reverting  restore everything at the source, and delete the objects created at the target
//
// The data of hosted control planes ([DataOptions]) is transferred through the store of an EtcdSnapshotPolicy that both
// management clusters can access. The transfer only sets annotations on objects, so the two management clusters may be
// on different hosts: during a move it owns the annotations controlplane.slipway.dev/quiesce and /restore of the
// control planes, and /take-snapshot of their policies. No acknowledged write is lost, because the final snapshot is
// taken while only etcd runs. Until the target is ready, the source retains its data and can start again. For each
// control plane:
//
//	target can start it? ─► store shared? ─► source: only etcd ─► snapshot ─► source: stopped ─► target: restored, API ready
//	└─────── the control plane runs ───────┘ └──────────────────── its API is not available ─────────────────────────────┘
//
// The ownership of host resources ([HostPair]) is transferred between two `slipway up` management clusters on the same
// host, run by the same user ([FindHost]). Processes and containers continue to run; only a control plane is restarted
// whose process would not find its files at the new place, or for which the target has another patch version. During a
// move the transfer owns the records in both data directories (package hosttransfer) and moves the folders. Folder
// names derive from the names of objects in the namespaces that an administrator moves, and Docker resources are
// determined by the records in the data directory of the source. For each Cluster:
//
//	source owns ─► outgoing recorded ─► folders move ─► incoming recorded ─► target owns
//	                  └────────────────────┴─────────────────┴─► (rollback) source owns
//
// Between the two records neither management cluster acts on the resources. Each arrow is the write of one file or the
// rename of one folder, so that an interrupted transfer can be continued or rolled back from the state on disk.
package move
