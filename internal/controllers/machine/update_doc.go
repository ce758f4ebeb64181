// Package update implements the Machine controller's part of an in-place update.
//
//	moved, triggered          pending                      done
//	wait for the owner ─► call UpdateMachine     ─► remove the annotation of the Machine ─► remove the annotations
//	                      until it is done          of its objects ─► remove the pending hook
//
// The package decides when to call the extension, calls it, reports the progress in the Updating condition, and
// removes the annotations of the update when it is done. It also removes annotations that an earlier update left
// behind.
//
// It owns the Updating condition and the removal of the annotations of the protocol (package inplace) from
// Machines, bootstrap configs and infrastructure machines. It never starts an update or changes a spec, which the
// owner of the Machine does, and never updates a Machine that is being deleted. A failed update is retried until it
// succeeds, or until a user or a MachineHealthCheck deletes the Machine. Start with [inPlaceUpdate], then read decide.go.
package machine
