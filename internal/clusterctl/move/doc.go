// Package move moves the objects of workload clusters from one management cluster to another.
//
// Does: reads what belongs together (package graph), checks both sides, and makes a [Plan] that it either describes or carries
// out. What was begun is noted in a journal, a ConfigMap in both management clusters, so that it can be continued, or taken
// back, after it was interrupted at any point:
//
//	nothing ─► pausing ─► creating ─► deleting ─► resuming ─► nothing
//	              │           │           │
//	              └───────────┴───────────┴─► reverting ─► nothing
//
// Where data of hosted control planes goes along (package data), these phases are between creating and deleting; once the source
// deletes there is no way back but another move:
//
//	creating ─► probing ─► saving ─► restoring ─► deleting
//	               └──────────┴──────────┴─► reverting
//
//	pausing    Clusters and ClusterClasses are being paused at the source
//	creating   their objects are being created at the target, then read back and compared
//	probing    the target is seen to be able to start the control planes, and to reach the snapshots
//	saving     the control planes are quiesced at the source, and their last snapshots taken
//	restoring  they are stopped at the source, and started at the target
//	deleting   the target has everything: the source's objects are being deleted
//	resuming   the source has nothing any more: what was paused is being resumed at the target
//	reverting  everything returns to the source, and what the move created at the target is deleted
//
// Owns: the journal, the pause of what it moves, and the annotation of what it deletes.
//
// Never: pauses anything before every check has passed, deletes an object that the other side does not have, moves a status, or
// touches workload clusters. What runs on the host of a management cluster (processes, containers) is handed over on one host
// (package host), or created again where its data goes along, or the move is refused.
//
// Read first: [Move], [Plan], then run.go.
package move
