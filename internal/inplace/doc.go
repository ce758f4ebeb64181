// Package inplace is the protocol of in-place updates: how controllers and extensions agree that a Machine is changed where it is
// instead of replaced.
//
//	owner of the Machine                           Machine controller                 extension
//	  CanUpdateMachine, CanUpdateMachineSet ───────────────────────────────────────► which changes it makes
//	  mark the Machine: update-in-progress
//	  infrastructure machine, bootstrap config:
//	    desired spec and mark, in one write each
//	  Machine: desired spec, then the pending hook ► UpdateMachine, until it is done ─► makes them
//	                                                 unmark the Machine, then the others, then the hook
//
// The mark of an object that a Machine refers to comes with its desired spec, so that a reader that sees the mark sees the spec, however
// old its cache is. The pending hook is last, so that an update that was triggered in part is not called; and it is what ends last, so
// that what is left to unmark is found after a crash.
//
// MachineSets of one MachineDeployment hand their Machines over for that (move.go).
//
// Does: reads and writes the two annotations ([IsMarked], [IsPending], [IsUpdating], [WithHook], [WithoutHook]); asks the one
// extension that has a hook whether it makes all changes ([Caller.CanUpdateMachine], [Caller.CanUpdateMachineSet]) and lets it make
// them ([Caller.UpdateMachine]); reads the annotations of MachineSets that hand over Machines ([MoveProblem], [IsAwaitingCount]).
//
// A question has one of four answers, told apart by [Answer]: no extension has the hook; it covers all changes; it leaves some; or
// it is not known, because the call failed or has to be made later. What is not known is never taken for "no": Machines are not
// replaced because an extension was down for a moment.
//
// Never: keeps answers, which package hook does, writes to the API, or decides whether a Machine may be disturbed now.
//
// Read first: [State], [Answer], then cover.go.
package inplace
