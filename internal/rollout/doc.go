// Package rollout plans how a MachineDeployment replaces its Machines.
//
// Does: says whether a MachineSet, and a Machine of it, is still what the deployment's template asks for, and how many
// replicas each of the deployment's MachineSets should have next. Everything is a value: MachineSets with their counts ([Set]), the
// resolved strategy ([Limits]) and the state of the whole ([State]) go in, the numbers to change come out
// ([Plan]). Called again and again with what became of them, the changes end in one MachineSet with all replicas.
//
//	State ──► Plan ──► []Change ──► the MachineSets' replicas ──► Machines come and go ──► State …
//
// Machines that an extension can update in place are handed from one MachineSet to the other instead ([Moving]).
//
// Owns: the meaning of maxSurge, maxUnavailable, rollout.after, maxInFlight and
// of which template fields need a new Machine.
//
// Never: reads or writes objects, reads the clock, or makes random numbers: time and seeds are passed in.
//
// Read first: [State], [Plan], then rolling.go.
package rollout
