// Package machine is the Machine controller. It connects a Machine with its bootstrap config and its infrastructure
// machine and copies their results (data Secret, provider ID, addresses, failure domain). It finds the Node with the
// provider ID in the workload cluster, synchronizes metadata to it, reports the state of all these objects in the
// Machine's status, and deletes them in order. Machines of MachinePools are handled like all others, but have no
// bootstrap config. With the feature gate InPlaceUpdates an extension can update a Machine in place
// (inplaceupdate.go). The controller never creates Machines, never starts an update in place, which the owner of the
// Machine does, and does not compute UpToDate for Machines of owners other than MachineDeployments. To change it, start
// with [snapshot] and [decide], then read deletion.go and conditions.go. Package manager starts the controller with
// [Add].
//
// The objects of a Machine, and the order of their deletion:
//
//	BootstrapConfig ── data secret ──► InfraMachine ── provider ID ──► Node
//	        └──────────────┬───────────────┘                           │
//	                       ▼                                           ▼
//	        Machine: spec, status, conditions      annotations, labels, taints from the Machine
//
//	deletion:  hooks ─► drain ─► volumes ─► hooks ─► infrastructure ─► bootstrap ─► Node ─► finalizer
//
// An in-place update passes through these states (package inplace). A failed update is retried until it succeeds, or
// until a user or a MachineHealthCheck deletes the Machine:
//
//	moved, triggered          pending                      done
//	wait for the owner ─► call UpdateMachine     ─► remove the annotation of the Machine ─► remove the annotations
//	                      until it is done          of its objects ─► remove the pending hook
//
// The controller owns these fields, and all other fields belong to other writers:
//
//	Machine            finalizer, cluster label, owner reference if it is standalone, spec.bootstrap.dataSecretName,
//	                   spec.providerID, spec.failureDomain, the removal of in-place annotations, status except for the
//	                   conditions of owners and health checks; UpToDate for Machines of MachineDeployments
//	provider objects   controller reference, cluster label, the removal of in-place annotations
//	Node               annotations, labels and taints (machines.NodeMetadata); spec.unschedulable during the deletion
package machine
