// Package move moves the objects of workload clusters from one management cluster to another. It reads and selects the
// objects (package graph), checks both management clusters, and computes a [Plan] that it either describes or executes.
// The progress is recorded in a journal, a ConfigMap in both management clusters, so that the move can be continued or
// rolled back after an interruption at any point:
//
//	nothing ─► pausing ─► creating ─► deleting ─► resuming ─► nothing
//	              │           │           │
//	              └───────────┴───────────┴─► reverting ─► nothing
//
// If the data of hosted control planes is transferred (package data), the following phases are between creating and
// deleting. Once the source starts to delete, the move cannot be rolled back, only reversed with another move:
//
//	creating ─► probing ─► saving ─► restoring ─► deleting
//	               └──────────┴──────────┴─► reverting
//
//	pausing    pause Clusters and ClusterClasses at the source
//	creating   create their objects at the target, then read them back and compare
//	probing    check that the target can start the control planes and read the snapshots
//	saving     quiesce the control planes at the source, and take final snapshots
//	restoring  stop the control planes at the source, and start them at the target
//	deleting   the target is complete: delete the objects at the source
//	resuming   the source is empty: resume the objects at the target
//	reverting  restore everything at the source, and delete the objects created at the target
//
// Nothing is paused before all checks have passed. An object is never deleted unless it exists in the other management
// cluster. Status is not moved, and workload clusters are not modified. For resources on the host of a management
// cluster (processes, containers), ownership is transferred on the same host (package host), or they are recreated if
// their data is transferred; otherwise the move is rejected.
package move
