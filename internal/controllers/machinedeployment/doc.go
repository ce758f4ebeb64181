// Package machinedeployment is the MachineDeployment controller. It maintains one MachineSet for the deployment's
// template, shifts the replicas of all MachineSets to it according to the plan of package rollout, propagates changes
// that existing Machines can adopt in place, and deletes empty MachineSets when the rollout is complete. If a Runtime
// Extension can update Machines in place, the MachineSets transfer their Machines instead of replacing them
// (inplace.go). After a restore the controller only adopts MachineSets until all ownership is restored (restore.go).
// It never creates, deletes or changes Machines; the MachineSet controller does. It owns of MachineDeployments the
// finalizer, the cluster label, the owner reference, the revision annotation and the status, of its MachineSets all
// metadata and spec fields in [desired], applied with one field manager, and of bootstrap and infrastructure templates
// the owner reference. To change the controller, start with [snapshot] and [decide], then read desired.go and package
// rollout. Package manager starts the controller with [Add].
//
// The objects of a deployment:
//
//	MachineDeployment ─► MachineSet (current template)   ┐
//	        │        └─► MachineSets (older templates)   ┴─► Machines ─► counts, conditions of the deployment
//	        └─ owner reference to the Cluster on the referenced templates
package machinedeployment
