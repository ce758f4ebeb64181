// Package whatif finds out what a change of a management cluster would do, before anybody makes it.
//
// Does: copies the objects of a management cluster into memory, lets the controllers bring that copy to rest, makes the change
// there as `kubectl apply` would, with defaulting, validation and admission, and lets the same controllers go on until nothing
// changes any more ([Run]). What they did is the [Plan]: which objects are created, changed field by field and deleted, which
// Machines are replaced and in how many steps, and what waits in the end. Nothing is predicted; see docs/decisions/0012-whatif.md.
//
//	objects ─► memory ─► controllers, played providers ─► rest ─► the change ─► rest ─► the difference
//
// Never: writes to a management cluster, calls one, calls a Runtime Extension unless it is told to ([Options].Registry), or knows what
// a controller decides.
//
// Read first: [Run], then [Plan]; then packages world, memory and played.
package whatif
