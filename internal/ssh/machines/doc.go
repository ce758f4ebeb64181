// Package machines is the controller of SSHMachines. It claims one SSHHost for each SSHMachine, waits until the controller
// of SSHHosts has recorded the claim on the host, installs what a node needs, runs the bootstrap data, and reports the
// state of the node. It writes the spec fields claimID and providerID and the status of SSHMachines, and status.claim of
// SSHHosts. A provisioned machine never gets another host, because the owner of the SSHMachine replaces it. Package ssh
// adds the controller to the manager ([Add]).
//
// Every field of an SSHMachine is untrusted input, including its claim ID and its status: a host belongs to an SSHMachine
// only if the claim in the status of the SSHHost, which users cannot write, has its namespace, name and claim ID. Only
// hosts that are offered to the namespace are claimed, and messages disclose nothing about others. Bootstrap data is stored
// nowhere but on the host, from which it is removed.
//
// The life of a machine:
//
//	wait ─► claim ID ─► claim ─► (recorded on the host) ─► prepare ─► bootstrap ─► provisioned ─► release ─► (cleaned)
//	                      ▲                 │ quarantined, or does not respond for five minutes
//	                      └ drop or release ◄
//
// A host that does not respond may have the record although its confirmation was lost, so its claim is released and not dropped:
// when the host responds again, the controller of SSHHosts cleans it, or drops the claim if there is no record.
package machines
