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
// # Whose an object is
//
// A manager with a watch filter reconciles an object only if it has the label cluster.x-k8s.io/watch-filter of that value,
// and so has its Cluster ([Scope.Has], at the beginning of every reconciliation, whatever event led to it). Of the core's kinds
// its cache has nothing else, so that nothing else is in a snapshot, counted, adopted or connected to. Objects of providers,
// templates, Secrets and ConfigMaps are of who refers to them, unless their own label says another value. What is created for
// an object gets its label (ownership.PassWatchLabel). Because what is not seen looks like what does not exist, a MachineSet or
// MachineDeployment that would create or delete asks first whether something of its own is only without the label, and so does
// a Cluster that would delete its control plane ([Scope.Hidden]); these wait for the label.
//
// Owns: the finalizer named in [Controller] and the conditions Paused and [ReconciledCondition], on the controller's own kind.
//
// Never: knows a kind, or decides anything about it. A controller that does not fit writes its own Reconcile
// from internal/kube and internal/condition; the driver does not grow.
//
// Read first: [Plan], then [Controller], then [Reconciler.Reconcile].
package loop
