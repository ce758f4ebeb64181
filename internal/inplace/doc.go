// Package inplace is the protocol of in-place updates: how controllers and extensions agree that a Machine is changed where it is
// instead of replaced.
//
//	owner of the Machine                         Machine controller                extension
//	  CanUpdateMachine, CanUpdateMachineSet ───────────────────────────────────────► which changes it makes
//	  mark: update-in-progress on the Machine
//	  desired spec: infrastructure machine, bootstrap config, Machine
//	  pending hook: UpdateMachine ──────────────► UpdateMachine, until it is done ─► makes them
//	                                              unmark clones, Machine, hook
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
