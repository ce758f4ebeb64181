// Package machineset keeps as many Machines as a MachineSet asks for.
//
// Does: makes Machines out of the template, each with its own bootstrap config and infrastructure machine of the same
// name; takes them away again, the least missed first; replaces those that a health check gave up; carries changes
// that need no new Machine to Machines, bootstrap configs and infrastructure machines.
//
//	                 ┌─ ownership: is the graph whole? ── no ─► adopt, or wait
//	MachineSet ──────┤
//	Machines         ├─ propagate: metadata, timeouts, gates, taints in place
//	MachineDeployment├─ judge: OwnerRemediated, UpToDate of standalone sets
//	templates        ├─ remediate: unhealthy Machines ─┐
//	control plane    └─ scale ─► preflight checks ─────┴─► create, delete
//
// Nothing is made or removed before the graph of owners is whole (package ownership), and nothing is made while a
// preflight check fails (MS-12). The fact that a pass saw a whole graph is on record in status.observedGeneration.
//
// Owns: of MachineSets: finalizer, cluster label, the Cluster as owner of standalone ones, and the status. Machines
// that it makes or adopts: under the field manager capi-machineset their owner, labels, annotations and spec, but for
// what the Machine controller takes over from providers; the conditions UpToDate of Machines without a
// MachineDeployment, and OwnerRemediated with reasons of its own. Bootstrap configs and infrastructure machines: created
// under capi-machineset, metadata kept under capi-machineset-metadata. The Cluster as owner of the templates of standalone
// MachineSets. The end of the templates of managed topologies.
//
// Never: rolls anything out (that is the MachineDeployment's), finds a Machine unhealthy (a MachineHealthCheck's), or
// takes a Machine down (the Machine controller's).
//
// Read first: [Snapshot], [Decide], then scale.go.
package machineset
