// Package machinepool is the MachinePool controller, and the reference for the shape of the others.
//
// Does: connects a MachinePool with its bootstrap config and its infrastructure pool, takes over what the
// infrastructure reports (provider IDs, replicas), represents the pool's instances as Machines where the
// infrastructure has a kind for them, follows their Nodes, and removes all of it in order.
//
//	BootstrapConfig ─ data secret ─┐
//	                               ├─► MachinePool ─► status, conditions
//	InfraMachinePool ─ IDs, count ─┘        │
//	   └─ InfraMachine (one a replica) ─────┴─► Machine (same name, one a replica) ─► Node
//
// A pool that comes back from a backup before its parts waits for them (restore.go); status.observedGeneration is the
// record that it was seen whole.
//
// Owns: of MachinePools: finalizer, cluster label, owner, spec.providerIDList,
// spec.template.spec.bootstrap.dataSecretName, spec.replicas where someone else scales, and the status. Of
// bootstrap configs and infrastructure pools: owner and cluster label. The Machines of the pool: what they are created
// with, what of it follows the template (package machines), their version, and their UpToDate condition. Where the pool has no Machines: annotations, labels and the uninitialized taint of its
// Nodes, and the deletion of Nodes whose instance is gone.
//
// Never: creates or removes instances; that is the infrastructure provider's. Where there are Machines, their
// Nodes are the Machine controller's.
//
// Read first: [Snapshot], [Decide], then conditions.go.
package machinepool
