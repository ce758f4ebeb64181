// Package machine is the controller of LocalMachines. It runs one node per LocalMachine in the backend that the spec
// selects: it waits for the cluster's infrastructure and the bootstrap data, creates the machine, runs the bootstrap
// data in a scripted machine, and reports the state of the machine. A provisioned machine is never recreated, because
// the owner of the LocalMachine replaces it; volatile machines (backend.Capabilities.Volatile) are the exception. A
// scripted machine that is stopped after it was provisioned is not started again, and spec.backend is immutable, so
// machines are not changed in place. Decisions distinguish backends only by the properties of their machines
// (backend.Capabilities, backend.Quota, backend.Machine). Package local adds the controller to the manager ([Add]).
//
// Every field of a LocalMachine is untrusted input, including its provider ID and its status. A host resource is used
// only if its labels assign it to the object (backend.Ref), and the operator's policy limits the mounts, images and
// resources of a new machine (backend.Capabilities.Denied). Bootstrap data is stored nowhere but in the node.
//
// On a control plane machine the controller also carries out, once, the orders of the control plane controller for the
// etcd member: report its state, make it the only member of its cluster, and copy a snapshot to the machine ([stager]).
//
// The life of a machine:
//
//	wait ─► create ─► providerID ─► bootstrap ─► provisioned ─► (lost: report) ─► delete
//	           ▲                        │ interrupted by a restart
//	           └──────── delete ◄───────┘
package machine
