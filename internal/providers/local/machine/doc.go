// Package machine is the controller of LocalMachines.
//
// Does: runs one node per LocalMachine, in the backend that its spec chooses: waits for the cluster's infrastructure and
// the bootstrap data, creates the machine, runs the bootstrap data in it where that is what makes it a node, and reports
// what became of it. A machine that was provisioned once is never created again: who created the LocalMachine replaces it.
// Only a machine that was nothing but memory is (backend.Terms.Volatile).
//
//	wait ─► create ─► providerID ─► bootstrap ─► provisioned ─► (lost: say so) ─► delete
//	           ▲                        │ interrupted by a restart
//	           └──────── delete ◄───────┘
//
// Decisions know a backend by its facts alone (backend.Terms, backend.Room, backend.Machine).
//
// Owns: the machine in its backend; spec.providerID; status of LocalMachines, with the conditions MachineProvisioned,
// BootstrapExecSucceeded (where bootstrap data is run), Deleting and Ready.
//
// Everything that a person may write into a LocalMachine, its provider ID and its status included, may be an attack: what
// is on the host counts as the machine's by its labels alone (backend.Ref), and what a new machine may mount, run and use
// is what the operator allows (backend.Terms.Denied).
//
// Never: starts a scripted machine that was stopped after it was provisioned, changes one in place (spec.backend is
// immutable, everything else is not looked at), or keeps bootstrap data anywhere but in the node.
//
// Read first: observe.go, then decide.go.
package machine
