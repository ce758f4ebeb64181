// Package machinedeployment is the MachineDeployment controller.
//
// Does: keeps one MachineSet for the deployment's template, moves the replicas of all its MachineSets to that one as
// package rollout plans it, propagates to the MachineSets what existing Machines take over in place, and deletes MachineSets
// that are empty when the rollout is complete. Where a Runtime Extension can update Machines in place, the MachineSets hand them over
// instead of replacing them (inplace.go). It only adopts until all restored objects are owned again.
//
//	MachineDeployment ─► MachineSet (current template)   ┐
//	        │        └─► MachineSets (older templates)   ┴─► Machines ─► counts, conditions of the deployment
//	        └─ owner Cluster on the templates that it refers to
//
// Owns: of MachineDeployments: finalizer, cluster label, owner, revision annotation and status. MachineSets that it
// controls: all of metadata and spec in [desired], by server-side apply under one field manager. Of bootstrap and
// infrastructure templates: the owner.
//
// Never: creates or deletes Machines, or writes to them; the MachineSet controller does.
//
// Read first: [Snapshot], [Decide], desired.go, then package rollout.
package machinedeployment
