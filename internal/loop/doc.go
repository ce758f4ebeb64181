// Package loop is the one driver of all controllers: observe, decide, act, report.
//
//	                ┌────────────── Ask: facts too costly to read every time ─────────────┐
//	                ▼                                                                      │
//	get ─► paused? ─► finalizer ─► Observe ─► Decide ─► Plan ─► Act on each Action ─► Report ─► status, events
//	                                (reads)    (pure)            (writes)              (pure)
//
// Does: for each object, what every controller needs and none should write again: not found, the scope of the manager
// (membership.Scope), a cache that has not seen our own last write, pause and its condition, finalizer, rounds of questions,
// carrying out the plan until the first failure, writing the status once, what kind of error leads to which result, one log
// line a reconciliation, events, metrics, traces, and recovery from panics.
//
// # When something is written
//
// Events that follow each other soon share a reconciliation, and changes of a status that nothing waits for share a write
// (package pacing; docs/decisions/0006-pacing.md). Each controller declares what is [Urgent]; the default is that a change can
// be deferred.
//
// Owns: the finalizer named in [Controller] and the conditions Paused and [ReconciledCondition], on the controller's own kind.
//
// Never: knows a kind, or decides anything about it. A controller that does not fit writes its own Reconcile
// from internal/kube and internal/condition; the driver does not grow.
//
// Read first: [Plan], then [Controller], then [Reconciler.Reconcile].
package loop
