// Package machinedeployment is the MachineDeployment controller.
//
// Does: keeps one MachineSet for the deployment's template, moves the replicas of all its MachineSets to that one as
// package rollout plans it, hands down what existing Machines take over in place, and removes MachineSets that are
// empty when the rollout is complete. It does nothing but adopt until everything that was restored is owned again.
//
//	MachineDeployment ─► MachineSet (template of now)   ┐
//	        │        └─► MachineSets (templates of old) ┴─► Machines ─► counts, conditions of the deployment
//	        └─ owner Cluster on the templates that it refers to
//
// Owns: of MachineDeployments: finalizer, cluster label, owner, revision annotation and status. MachineSets that it
// controls: all of metadata and spec that it says in [desired], by server-side apply under one field manager. Of
// bootstrap and infrastructure templates: the owner.
//
// Never: creates or deletes Machines, or writes to them; that is the MachineSet controller's.
//
// Read first: [Snapshot], [Decide], desired.go, then package rollout.
package machinedeployment
