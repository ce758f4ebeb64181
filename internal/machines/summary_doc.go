// Package summary computes the status of an owner from its Machines. It counts Machines by state and version
// ([Machines.Count], [Machines.Versions]) and aggregates their conditions into the conditions that MachineSets,
// MachineDeployments and control planes have in common. The package does not write a status; the condition table of
// each kind determines which conditions it has. Start with [SummaryInput].
package machines
