// Package reconciler is the driver that all controllers share. A controller declares a [Controller]: it observes a
// snapshot, decides on a [Plan] as a pure function of the snapshot, acts on each [Action], and reports the status. The
// driver does everything else. It ignores objects that no longer exist or are outside the manager's scope (package
// watches), waits until the cache shows the controller's last write, handles pausing, adds and removes the finalizer,
// maps errors to results, writes the status once (package pacing), and records log lines, events, metrics and traces
// (package reporting). It contains no logic for a particular kind. A controller that does not fit implements its own
// Reconcile with packages kube and condition instead of extending the driver. To change the driver, start with [Plan],
// then read [Controller] and [Reconciler.Reconcile]. Package manager fills a [Setup] for each controller, whose Add
// function calls [NewReconciler].
//
// A reconciliation has these steps:
//
//	get ─► paused? ─► finalizer ─► Observe ─► Decide ─► Plan ─► Act on each Action ─► Report ─► status, events
//	                               (reads)    (pure)            (writes)              (pure)
//	                                          ▲    │
//	                                          └────┘ Read: reads that are too costly for every reconciliation
//
// Decide runs again after each of these reads, until the plan requests no more. Actions run in order until one fails. A
// panic becomes the error of the object's reconciliation. The driver owns the finalizer that [Controller] names and the
// conditions Paused and Reconciled of the controller's own kind.
package reconciler
