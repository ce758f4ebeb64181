// Package machineset is the MachineSet controller, which maintains the desired number of Machines. It creates
// Machines from the template, each with its own bootstrap config and infrastructure machine of the same name. It
// deletes surplus Machines in the order of their deletion priority, replaces Machines whose health check requests
// it, and applies changes that need no new Machine to Machines, bootstrap configs and infrastructure machines.
// Package machines contains the logic that is shared with other owners of Machines.
//
//	                 ┌─ ownership: are all owners known? ── no ─► adopt, or wait
//	MachineSet ──────┤
//	Machines         ├─ propagate: metadata, timeouts, gates, taints in place
//	MachineDeployment├─ conditions: OwnerRemediated, UpToDate (standalone)
//	templates        ├─ remediate: unhealthy Machines ─┐
//	control plane    └─ scale ─► preflight checks ─────┴─► create, delete
//
// If its MachineDeployment requests it, a MachineSet transfers surplus Machines to another MachineSet of the same
// deployment, which updates them in place (move.go).
//
// Nothing is created or deleted before the owners of all Machines are known (package ownership), which
// status.observedGeneration records, and nothing is created while a preflight check fails.
//
// The controller owns of MachineSets the finalizer, the cluster label, the owner reference of standalone ones, and
// the status. Of Machines that it creates or adopts it owns, with the field manager capi-machineset, owner, labels,
// annotations and spec, except for the fields that the Machine controller copies from providers. It also owns the
// UpToDate condition of Machines without a MachineDeployment, and OwnerRemediated with its own reasons. Bootstrap
// configs and infrastructure machines are created with capi-machineset; their metadata is applied with
// capi-machineset-metadata. It makes the Cluster an owner of the templates of standalone MachineSets, and deletes
// the templates of managed topologies. The annotations of Machines that are transferred or updated in place have
// another field manager, because the Machine controller removes some of them.
//
// The controller never performs a rollout (the MachineDeployment controller does), never marks a Machine as
// unhealthy (a MachineHealthCheck does), and never shuts down a deleted Machine (the Machine controller does).
// Start with [Snapshot] and [Decide], then read scale.go.
package machineset
