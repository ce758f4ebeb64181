// Package machine is the controller of LocalMachines. It runs one node per LocalMachine in the backend that the spec
// selects: it waits for the cluster's infrastructure and the bootstrap data, creates the machine, runs the bootstrap
// data in a scripted machine, and reports the state of the machine. A provisioned machine is never recreated, because
// the owner of the LocalMachine replaces it; volatile machines (backend.Terms.Volatile) are the exception. A scripted
// machine that is stopped after it was provisioned is not started again, and spec.backend is immutable, so machines are
// not changed in place.
//
//	wait ─► create ─► providerID ─► bootstrap ─► provisioned ─► (lost: report) ─► delete
//	           ▲                        │ interrupted by a restart
//	           └──────── delete ◄───────┘
//
// Decisions distinguish backends only by their properties (backend.Terms, backend.Room, backend.Machine).
//
// Every field of a LocalMachine is untrusted input, including its provider ID and its status. A host resource is used
// only if its labels assign it to the object (backend.Ref), and the operator's policy limits the mounts, images and
// resources of a new machine (backend.Terms.Denied). Bootstrap data is stored nowhere but in the node.
package machine
