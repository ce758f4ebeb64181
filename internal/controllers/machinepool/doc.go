// Package machinepool is the MachinePool controller, whose structure is the model for the other controllers. It
// connects a MachinePool with its bootstrap config and its infrastructure pool, copies the results of the
// infrastructure (provider IDs, replicas), represents the pool's instances as Machines if the infrastructure has a
// kind for them, observes their Nodes, and deletes all these objects in order.
//
//	BootstrapConfig ─ data secret ─┐
//	                               ├─► MachinePool ─► status, conditions
//	InfraMachinePool ─ IDs, count ─┘        │
//	   └─ InfraMachine (one a replica) ─────┴─► Machine (same name, one a replica) ─► Node
//
// A pool that is restored before its Machines waits for them (restore.go); status.observedGeneration records that
// the pool was complete.
//
// The controller owns of MachinePools the finalizer, the cluster label, the owner reference, spec.providerIDList,
// spec.template.spec.bootstrap.dataSecretName, spec.replicas with external scaling, and the status. Of bootstrap
// configs and infrastructure pools it owns the owner reference and the cluster label. Of the pool's Machines it
// owns the fields of their creation, the fields that follow the template in place (package machines), the version,
// and the UpToDate condition. For a pool without Machines it also owns annotations, labels and the uninitialized
// taint of the Nodes, and deletes Nodes whose instance is gone. It never creates or deletes instances, which the
// infrastructure provider does. The Nodes of Machines are managed by the Machine controller. Start with [Snapshot]
// and [Decide], then read conditions.go.
package machinepool
