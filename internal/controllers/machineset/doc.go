// Package machineset is the MachineSet controller, which maintains the desired number of Machines. It creates Machines
// from the template, each with its own bootstrap config and infrastructure machine of the same name. It deletes
// surplus Machines in the order of their deletion priority, replaces Machines whose health check requests it, and
// applies changes that need no new Machine to Machines, bootstrap configs and infrastructure machines. If its
// MachineDeployment requests it, a MachineSet transfers surplus Machines to another MachineSet of the same deployment,
// which updates them in place (transfer.go). Nothing is created or deleted before the owners of all Machines are known
// (package ownership), which status.observedGeneration records, and nothing is created while a preflight check fails.
// The controller never performs a rollout (the MachineDeployment controller does), never marks a Machine as unhealthy
// (a MachineHealthCheck does), and never shuts down a deleted Machine (the Machine controller does). Package machines
// contains the logic that is shared with other owners of Machines. To change the controller, start with [snapshot] and
// [decide], then read scale.go. Package manager starts the controller with [Add].
//
// The parts of a plan, from top to bottom:
//
//	                 ┌─ ownership: are all owners known? ── no ─► adopt, or wait
//	MachineSet ──────┤
//	Machines         ├─ propagate: metadata, timeouts, gates, taints in place
//	MachineDeployment├─ conditions: OwnerRemediated, UpToDate (standalone)
//	templates        ├─ remediate: unhealthy Machines ─┐
//	control plane    └─ scale ─► preflight checks ─────┴─► create, delete
//
// The controller owns these fields. The annotations of Machines that are transferred or updated in place have another
// field manager, because the Machine controller removes some of them:
//
//	MachineSet            finalizer, cluster label, owner reference if it is standalone, status
//	Machine               owner, labels, annotations and spec with the field manager capi-machineset, except for the
//	                      fields that the Machine controller copies from providers; UpToDate if there is no
//	                      MachineDeployment; OwnerRemediated with its own reasons
//	bootstrap config,     their creation with capi-machineset, their metadata with capi-machineset-metadata
//	infrastructure machine
//	template              the Cluster as an owner if the MachineSet is standalone; deletion in managed topologies
package machineset
