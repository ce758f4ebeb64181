// Package update starts in-place updates of control plane Machines as an alternative to replacing them.
//
//	a Machine would be deleted because it is outdated
//	   │ eligible, and the control plane passed its preflight checks
//	   ▼
//	call the extension ─ makes all changes ─► mark the Machine ─► write its objects ─► pending hook ─► wait for its end
//	   ├─ leaves some changes, or there is no extension ─► the Machine is deleted and replaced
//	   └─ no response ─► neither; the condition RollingOut names the handler that did not respond
//
// [Input.Begin] determines whether a Machine may be updated in place and requests the extension's response about the
// changes. [Writer.Trigger] writes the desired state of the Machine and its objects. An interrupted trigger is
// continued with the desired state at that time ([Input.Ongoing]). Only one Machine is updated at a time.
//
// The package writes the annotations update-in-progress and pending-hooks of a control plane Machine while an update
// starts, and the spec of its infrastructure machine and kubeadmConfig. The Machine controller then calls
// UpdateMachine and ends the update. Start reading at [updateInput] and act.go.
package controlplane
