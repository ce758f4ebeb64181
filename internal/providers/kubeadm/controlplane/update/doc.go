// Package update is the in-place update of a control plane's Machines, as their owner sees it.
//
//	a Machine would be deleted because it is outdated
//	   │ eligible, and the control plane passed its preflight checks
//	   ▼
//	ask the extension ─ makes all changes ─► mark the Machine ─► write its objects ─► pending hook ─► wait until it is over
//	   ├─ leaves some, or there is no extension ─► the Machine is deleted, and replaced
//	   └─ no answer ─► neither; the condition RollingOut says which handler did not answer
//
// Does: says which Machine may be updated in place ([Input.Begin]), asks for it what the extension makes of the changes, and writes what
// the Machine and its objects shall be ([Writer.Trigger]). A trigger that was interrupted is continued, with what is desired then
// ([Input.Ongoing]).
//
// Owns: the annotations update-in-progress and pending-hooks of control plane Machines while an update begins; the spec of their
// infrastructure machines and KubeadmConfigs.
//
// Never: calls UpdateMachine, which the Machine controller does, and which ends the update; updates two Machines at once; decides that a
// Machine has to go.
//
// Read first: [Input], then act.go.
package update
