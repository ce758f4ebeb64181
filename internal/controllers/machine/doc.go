// Package machine is the Machine controller. It connects a Machine with its bootstrap config and its infrastructure
// machine and copies their results (data Secret, provider ID, addresses, failure domain). It finds the Node with
// the provider ID in the workload cluster, synchronizes metadata to it, reports the state of all these objects in
// the Machine's status, and deletes them in order. Machines of MachinePools are handled like all others, but have
// no bootstrap config. With the feature gate InPlaceUpdates an extension can update a Machine in place (package
// update).
//
//	BootstrapConfig ── data secret ──► InfraMachine ── provider ID ──► Node
//	        └──────────────┬───────────────┘                           │
//	                       ▼                                           ▼
//	        Machine: spec, status, conditions      annotations, labels, taints from the Machine
//
//	deletion:  hooks ─► drain ─► volumes ─► hooks ─► infrastructure ─► bootstrap ─► Node ─► finalizer
//
// The controller owns of Machines the finalizer, the cluster label, the owner reference of standalone Machines,
// spec.bootstrap.dataSecretName, spec.providerID, spec.failureDomain, and the status except for the conditions of
// owners and health checks. It also sets the UpToDate condition for Machines of MachineDeployments. Of bootstrap
// configs and infrastructure machines it owns the controller reference and the cluster label. Of Nodes it owns the
// annotations, labels and taints of package nodemeta, and spec.unschedulable once the Machine is being deleted. It
// never creates Machines and does not compute UpToDate for Machines of other owners. Start with [Snapshot] and
// [Decide], then read deletion.go and conditions.go.
package machine
