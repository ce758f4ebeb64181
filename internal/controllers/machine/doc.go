// Package machine is the Machine controller.
//
// Does: connects a Machine with its bootstrap config and its infrastructure
// machine, takes over what they report (data secret, provider ID, addresses,
// failure domain), finds the Node with that provider ID in the workload cluster,
// marks and labels it, shows the state of all in its status, and deletes all of it
// in order. Machines of MachinePools are Machines like others, without a
// bootstrap config. Where the gate is on it lets an extension update a Machine in
// place (package update).
//
//	BootstrapConfig ── data secret ──► InfraMachine ── provider ID ──► Node
//	        └──────────────┬───────────────┘                           │
//	                       ▼                                           ▼
//	        Machine: spec, status, conditions      annotations, labels, taints from the Machine
//
//	deletion:  hooks ─► drain ─► volumes ─► hooks ─► infrastructure ─► bootstrap ─► Node ─► finalizer
//
// Owns: of Machines: finalizer, cluster label, owner of those no one made,
// spec.bootstrap.dataSecretName, spec.providerID, spec.failureDomain, and the
// status except the conditions of owners and health checks; of Machines of a
// MachineDeployment the condition UpToDate too. Of bootstrap configs and
// infrastructure machines: controller owner and cluster label. Of Nodes: the
// annotations, labels and taints of package nodemeta, and spec.unschedulable once
// the Machine is deleted.
//
// Never: creates Machines, or says whether one of another owner is up to date.
//
// Read first: [Snapshot], [Decide], then deletion.go and conditions.go.
package machine
