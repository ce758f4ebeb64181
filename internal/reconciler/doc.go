// Package reconciler is the driver that all controllers share, with the parts that a controller is built from. A
// controller declares a [Controller]: it observes a snapshot, decides on a [Plan] as a pure function of the snapshot,
// acts on each [Action], and reports the status. The driver does everything else. It ignores objects that no longer
// exist or are outside the manager's [Scope], waits until the cache shows the controller's last write, handles pausing,
// adds and removes the finalizer, maps errors to results, writes the status once, and records log lines, events,
// metrics and traces. The package also maintains the indexes with which the members of a Cluster and the objects that
// reference a provider object are found ([InCluster], [Referrers]), and records the provisioning of Machines
// ([ProvisioningRecorder]). It contains no logic for a particular kind. A controller that does not fit implements its
// own Reconcile with packages kube and condition instead of extending the driver. To change the driver, start with
// [Plan], then read [Controller] and [Reconciler.Reconcile].
//
// A reconciliation has these steps:
//
//	get ─► paused? ─► finalizer ─► Observe ─► Decide ─► Plan ─► Act on each Action ─► Report ─► status, events
//	                               (reads)    (pure)            (writes)              (pure)
//	                                          ▲    │
//	                                          └────┘ Ask: reads that are too costly for every reconciliation
//
// Decide runs again after each of these reads, until the plan requests no more. Actions run in order until one fails. A
// panic becomes the error of the object's reconciliation. The driver owns the finalizer that [Controller] names and the
// conditions Paused and [reconciledCondition] of the controller's own kind.
//
// Events in quick succession share one reconciliation, and status changes that nothing waits for share one write
// (package pacing; docs/decisions/0006-pacing.md). Each controller declares which changes are [Urgent].
//
// A manager with a watch filter reconciles an object only if the object and its Cluster both have the label
// cluster.x-k8s.io/watch-filter with the filter's value ([Scope.Includes]). The manager's cache contains no other
// objects of the core's kinds:
//
//	object                                        in the scope
//	Cluster                                       if it has the label
//	object of the core's kinds in a Cluster       if it and the Cluster have the label ([ClusterOf])
//	provider object, template, Secret, ConfigMap  with the object that references it, unless its label has another value
//	object that the manager creates               always: it inherits the label (ownership.PassWatchLabel)
//
// An object outside the scope looks as if it did not exist. Before a MachineSet or MachineDeployment creates or deletes
// objects, and before a Cluster deletes its control plane, the controller therefore lists the members that only lack
// the label ([Scope.Hidden]) and waits until they have it.
//
// The provisioning of a Machine, from its creation to its first Ready, is one OpenTelemetry trace. The spans are
// computed from the transition times of the Machine's conditions ([provisioningStages]), so that a restart of the
// manager loses nothing. All IDs are derived from the Machine's UID, so that exporting a trace twice yields the same
// spans, and reconciliations of the Machine and its dependent objects join the same trace ([withMachineTrace]).
package reconciler
