// Package loop is the driver that all controllers share: observe, decide, act, report.
//
//	get ─► paused? ─► finalizer ─► Observe ─► Decide ─► Plan ─► Act on each Action ─► Report ─► status, events
//	                               (reads)    (pure)            (writes)              (pure)
//	                                          ▲    │
//	                                          └────┘ Ask: reads that are too costly for every reconciliation
//
// For each object the driver does everything that controllers have in common. It ignores objects that no longer
// exist or are outside the manager's scope ([membership.Scope]), and skips the reconciliation while the cache does
// not contain the controller's last write. It handles pausing and its condition, adds and removes the finalizer,
// repeats Decide until it requests no more reads, runs the actions until the first one fails, and writes the status
// once. It also maps errors to results, writes one log line per reconciliation, records events, metrics and traces,
// and recovers from panics.
//
// # When the driver writes
//
// Events in quick succession share one reconciliation, and status changes that nothing waits for share one write
// (package pacing; docs/decisions/0006-pacing.md). Each controller declares which changes are [Urgent]; other
// changes can be deferred.
//
// The driver owns the finalizer named in [Controller] and the conditions Paused and [ReconciledCondition] of the
// controller's own kind. It contains no logic for a particular kind. A controller that does not fit implements its
// own Reconcile with packages kube and condition instead of extending the driver.
//
// Start with [Plan], then read [Controller] and [Reconciler.Reconcile].
package reconciler
