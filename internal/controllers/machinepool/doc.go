// Package machinepool is the MachinePool controller, whose structure is the model for the other controllers. It
// connects a MachinePool with its bootstrap config and its infrastructure pool, copies the results of the
// infrastructure (provider IDs, replicas), represents the pool's instances as Machines if the infrastructure has a
// kind for them, observes their Nodes, and deletes all these objects in order. A pool that is restored before its
// Machines waits for them (restore.go); status.observedGeneration records that the pool was complete. The controller
// never creates or deletes instances, which the infrastructure provider does, and does not manage the Nodes of
// Machines, which the Machine controller does. To change it, start with [snapshot] and [decide], then read
// conditions.go. Package manager starts the controller with [Add].
//
// The objects of a pool:
//
//	BootstrapConfig ─ data secret ─┐
//	                               ├─► MachinePool ─► status, conditions
//	InfraMachinePool ─ IDs, count ─┘        │
//	   └─ InfraMachine (one a replica) ─────┴─► Machine (same name, one a replica) ─► Node
//
// The controller owns these fields:
//
//	MachinePool         finalizer, cluster label, owner reference, spec.providerIDList, data Secret name in the template,
//	                    spec.replicas with external scaling, status
//	provider objects    owner reference, cluster label
//	Machine             fields of its creation, fields that follow the template in place (package machines), version,
//	                    UpToDate
//	Node                for a pool without Machines: annotations, labels, the uninitialized taint, and the deletion of
//	                    Nodes whose instance is gone
package machinepool
