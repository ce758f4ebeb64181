// Package loop is the one driver of all controllers: observe, decide, act, report.
//
//	                ┌────────────── Ask: facts too costly to read every time ─────────────┐
//	                ▼                                                                      │
//	get ─► paused? ─► finalizer ─► Observe ─► Decide ─► Plan ─► Act on each Action ─► Report ─► status, events
//	                                (reads)    (pure)            (writes)              (pure)
//
// Does: for each object, what every controller needs and none should write again: not found, a cache that has
// not seen our own last write, pause and its condition, finalizer, rounds of questions, carrying out the plan
// until the first failure, writing the status once, what kind of error leads to which result, one log line a
// pass, events, and recovery from panics.
//
// Owns: the finalizer named in [Controller] and the Paused condition, both on the controller's own kind.
//
// Never: knows a kind, or decides anything about it. A controller that does not fit writes its own Reconcile
// from internal/kube and internal/condition; the driver does not grow.
//
// Read first: [Plan], then [Controller], then [Reconciler.Reconcile].
package loop
