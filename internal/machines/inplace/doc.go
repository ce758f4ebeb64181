// Package inplace implements the protocol between controllers and extensions for in-place updates, which change a
// Machine instead of replacing it. It reads and writes the two annotations of the protocol ([IsMarked], [StateOf],
// [WithHook], [WithoutHook]), and calls the extension that implements a hook to check whether it makes all changes
// ([Caller.CanUpdateMachine], [Caller.CanUpdateMachineSet]) and to make them ([Caller.UpdateMachine]). For an in-place
// rollout, the MachineSets of a MachineDeployment transfer Machines to each other; the package reads the annotations
// of these MachineSets ([MoveProblem], [IsAwaitingCount]). It does not write to the API and does not decide whether a
// Machine may be disrupted now. Responses are cached in package hook. To change the package, start with [State] and
// [UpdateCheck], then read coverage.go.
//
// The steps of an update. The update-in-progress annotation of a referenced object is written together with its
// desired spec, so that a reader that sees the annotation sees the spec as well, even with a stale cache. The pending
// hook is set last, so that the extension is never called for a partly triggered update, and removed last, so that
// after a crash the remaining annotations are found:
//
//	owner of the Machine                           Machine controller                  extension
//	  CanUpdateMachine, CanUpdateMachineSet ────────────────────────────────────────► returns the changes it makes
//	  annotate the Machine: update-in-progress
//	  infrastructure machine, bootstrap config:
//	    desired spec and annotation, in one write
//	  Machine: desired spec, then the pending hook ► UpdateMachine, until it is done ──► makes the changes
//	                                                 remove the annotation of the Machine, then of the other
//	                                                 objects, then the pending hook
//
// The results of a check ([UpdateCheck]). An unknown result never counts as "no", because Machines must not be
// replaced only because an extension was briefly unavailable:
//
//	no extension implements the hook       Machines are replaced
//	the extension covers all changes       Machines are updated in place
//	some changes are not covered           Machines are replaced
//	the call failed, or is not possible    unknown: nothing happens until the call succeeds
package inplace
