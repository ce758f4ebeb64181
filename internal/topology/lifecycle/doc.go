// Package lifecycle decides the order in which a Cluster with a topology is created, upgraded and deleted, and when
// lifecycle hooks are called. From the observed state of a Cluster ([Input]), [Next] computes one [Decision]: the
// version that the control plane and each worker may have now, the parts that must not change or not be created yet,
// the hooks to call, the annotations to set first, and the condition TopologyReconciled. The topology controller
// executes the decision; this package does not call hooks, and reads or writes no objects. The annotations
// pending-hooks, upgrade-step and ok-to-delete of Clusters store the state of hooks. Hooks are no security boundary: a
// user who can write a Cluster can set its annotations.
//
// The upgrade plan is recomputed for each decision, from the current versions of the parts. Its source is:
//
//	the ClusterClass names an extension   the response to GenerateUpgradePlan
//	the ClusterClass lists versions       the newest version of each minor version in between, then the target
//	otherwise                             the target, at most one minor version away
//
// The control plane is upgraded to every minor version. Workers take the minimum number of steps that the version skew
// policy for kubelets allows, unless the extension returns their steps.
//
// An upgrade passes a sequence of gates (sequence.go). The sequence stops at the first closed gate; the following gates
// are not evaluated:
//
//	gate                      open when                                          then
//	plan                      it can be computed
//	recorded version          it was written, or the plan no longer has it       else the control plane gets it
//	failed version            no user corrected it (version check turned off)    else the control plane gets the correction
//	control plane             it runs the version in its spec
//	AfterControlPlaneUpgrade  not pending, or does not block                     not pending
//	BeforeWorkersUpgrade      no worker has to upgrade, or does not block        not pending
//	workers due               none has to get the control plane's version        the due ones get it, in order
//	workers                   none is upgrading
//	AfterWorkersUpgrade       not pending, or does not block                     not pending
//	more to do                the plan has a next version
//	rollouts of workers       the upgrade has started, or none is rolling out
//	BeforeClusterUpgrade      AfterClusterUpgrade is pending, or does not block  AfterClusterUpgrade is pending
//	BeforeControlPlaneUpgrade does not block                                     AfterControlPlaneUpgrade is pending, and
//	                                                                             both hooks of workers if they are next
//	the control plane gets its next version
//
// AfterClusterUpgrade is called when the upgrade is complete, and AfterControlPlaneInitialized when the control plane
// is initialized. Neither blocks the sequence, but the webhook rejects another version while AfterClusterUpgrade is
// pending.
//
// No crash makes the sequence skip a hook. The pending hooks and the next version of the control plane (upgrade-step)
// are written to the Cluster before anything else, in one write. If the control plane does not have the version in
// upgrade-step while AfterControlPlaneUpgrade is pending, it gets this version without another call. When a hook with
// handlers does not block, this is written before the next hook is called: no hook is skipped, and none is called again
// for a step that it has already permitted. A call is repeated only after a crash between the response and the write
// that records it.
//
// While an upgrade is not complete, some parts must not change, because their Machines would be replaced twice:
//
//	                   version and spec are frozen                       is not created
//	control plane      while the plan has versions for it that it may
//	                   not have yet
//	worker             while it does not have the version of the         while the control plane is upgrading, scaling
//	                   topology, unless it gets its next version now     or has upgrades before it, and while a hook
//	                   or is deferred                                    before the workers' upgrade blocks
//
// While an upgrade waits for the rollout of a worker, workers are not frozen, because a change of the worker may be
// necessary to complete the rollout.
package lifecycle
