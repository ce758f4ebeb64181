// Package update is the in-place update of a Machine, as the Machine controller sees it.
//
//	moved, triggered          pending                      done
//	wait for the owner ─► UpdateMachine, again and ─► unmark the Machine ─► unmark its objects ─► remove the pending hook
//	                      again until it is done
//
// Does: decides when the extension is called, calls it, says in the condition Updating how far it is, and removes what marks the update
// when it is over. What a Machine that is not updating any more left behind is removed too.
//
// Owns: the condition Updating, and the removal of the annotations of the protocol (package inplace) from Machines, bootstrap configs and
// infrastructure machines.
//
// Never: begins an update or changes a spec, which the owner of the Machine does; updates a Machine that is being deleted. An update that
// failed is not given up: the extension is called again, until it succeeds or the Machine is deleted, by a person or by a
// MachineHealthCheck.
//
// Read first: [Update], then decide.go.
package update
