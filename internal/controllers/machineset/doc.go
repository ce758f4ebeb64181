// Package machineset keeps as many Machines as a MachineSet asks for.
//
// Does: creates Machines from the template, each with its own bootstrap config and infrastructure machine of the same name;
// deletes surplus Machines in deletion-priority order; replaces those for which a health check asks; applies changes that need
// no new Machine to Machines, bootstrap configs and infrastructure machines. What it has in common with other owners of Machines
// is in package machines.
//
//	                 ┌─ ownership: are all owners known? ── no ─► adopt, or wait
//	MachineSet ──────┤
//	Machines         ├─ propagate: metadata, timeouts, gates, taints in place
//	MachineDeployment├─ conditions: OwnerRemediated, UpToDate of standalone sets
//	templates        ├─ remediate: unhealthy Machines ─┐
//	control plane    └─ scale ─► preflight checks ─────┴─► create, delete
//
// A set whose MachineDeployment says so hands over its surplus to another of it instead, which has it updated in place (move.go).
//
// Nothing is created or deleted before the owners of all Machines are known (package ownership), and nothing is created while a
// preflight check fails. That they were known once is on record in status.observedGeneration.
//
// Owns: of MachineSets: finalizer, cluster label, the Cluster as owner of standalone ones, and the status. Machines
// that it creates or adopts: under the field manager capi-machineset their owner, labels, annotations and spec, but for
// what the Machine controller takes over from providers; the conditions UpToDate of Machines without a
// MachineDeployment, and OwnerRemediated with reasons of its own. Bootstrap configs and infrastructure machines: created
// under capi-machineset, metadata applied under capi-machineset-metadata. The Cluster as owner of the templates of standalone
// MachineSets. The deletion of the templates of managed topologies.
//
// Annotations of Machines that are handed over or updated in place are of another field manager, since the Machine controller
// removes some of them.
//
// Never: rolls anything out (the MachineDeployment controller does), declares a Machine unhealthy (a MachineHealthCheck does),
// or takes a deleted Machine down (the Machine controller does).
//
// Read first: [Snapshot], [Decide], then scale.go.
package machineset
