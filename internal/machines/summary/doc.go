// Package summary says what the status of an owner tells about its Machines.
//
// Does: counts Machines by how far they are, and their versions ([Machines.Count], [Machines.Versions]), and adds up their
// conditions to those that MachineSets, MachineDeployments and control planes have in common.
//
// Never: writes a status. Which conditions a kind has is in its own table.
//
// Read first: [Machines].
package summary
