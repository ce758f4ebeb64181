// Package machine is the controller of LocalMachines.
//
// Does: runs one node per LocalMachine: waits for the cluster's infrastructure and the bootstrap data (IM-11), makes
// the container, runs the bootstrap data in it, and reports what became of it (IM-02 to IM-06). A machine that was
// provisioned once is never made again: it is replaced by whoever made the LocalMachine.
//
//	wait ─► create ─► providerID ─► bootstrap ─► provisioned ─► (lost: say so) ─► delete
//	           ▲                        │ interrupted by a restart
//	           └──────── delete ◄───────┘
//
// A simulated machine has no container, but a Node that appears in the workload cluster after a while, and that
// annotations can keep away or make not ready (simulateddecide.go).
//
// Owns: the container and its volume; spec.providerID; status of LocalMachines, with the conditions
// ContainerProvisioned, BootstrapExecSucceeded (both NodeSimulated instead for simulated machines), Deleting and Ready.
//
// Everything that a person may write into a LocalMachine, its provider ID and its status included, may be an attack: what
// is on the host counts as the machine's by its labels alone (backend.Ref), and what a new container may mount, run and
// use is what the operator allows (allowed.go).
//
// Never: starts a container that somebody stopped after it was provisioned, changes one in place (IM-07: spec.backend
// is immutable, everything else is not looked at), or keeps bootstrap data anywhere but in the node.
//
// Read first: observe.go, then decide.go.
package machine
