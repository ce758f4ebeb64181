// Package inplace implements the protocol between controllers and extensions for in-place updates, which change a
// Machine instead of replacing it.
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
// The update-in-progress annotation of a referenced object is written together with its desired spec. A reader that
// sees the annotation therefore sees the spec as well, even with a stale cache. The pending hook is set last, so
// that the extension is never called for a partly triggered update. It is also removed last, so that after a crash
// the remaining annotations are found.
//
// For an in-place rollout, the MachineSets of a MachineDeployment transfer Machines to each other (move.go).
//
// The package reads and writes the two annotations ([IsMarked], [isPending], [isUpdating], [WithHook],
// [WithoutHook]). It calls the extension that implements a hook to check whether it makes all changes
// ([Caller.CanUpdateMachine], [Caller.CanUpdateMachineSet]) and to make them ([Caller.UpdateMachine]). It also
// reads the annotations of MachineSets that transfer Machines ([MoveProblem], [IsAwaitingCount]).
//
// A check has one of four results, see [UpdateCheck]: no extension implements the hook, the extension covers all
// changes, some changes are not covered, or the result is unknown because the call failed or could not be made yet.
// An unknown result never counts as "no": Machines are not replaced because an extension was briefly unavailable.
//
// Responses are cached in package hook. The package does not write to the API and does not decide whether a Machine
// may be disrupted now. Start with [State] and [UpdateCheck], then read cover.go.
package inplace
