// Package lifecycle decides in which order a Cluster with a topology is created, upgraded and deleted, and when lifecycle hooks
// are called.
//
// Does: makes the upgrade plan, and from what is known of a Cluster one decision, [Next]: which version the control plane and
// each worker have now, what is frozen or not created yet, which hook to call, which annotations to set first, and what the
// condition TopologyReconciled says.
//
// # Upgrade plans
//
// The plan is made again each time, from the versions that the parts have. Where it comes from:
//
//	the ClusterClass names an extension   its answer to GenerateUpgradePlan
//	the ClusterClass lists versions       the newest of each minor version on the way, then the target
//	otherwise                             the target, at most one minor version away
//
// The control plane passes every minor version. Workers pass as few as a kubelet may be older than an API server, unless the
// extension says which.
//
// # One upgrade
//
// Each row is a gate. The first that is closed ends the sequence; what follows waits.
//
//	gate                      open when                                             then
//	plan                      it can be made
//	version that never runs   it is not corrected by a person (without check)       the control plane gets the corrected one
//	control plane             it runs the version of its spec
//	AfterControlPlaneUpgrade  not pending, or let go                                not pending
//	BeforeWorkersUpgrade      no worker has to upgrade, or let go                   not pending
//	workers due               none has to get the control plane's version           the due ones get it, in order
//	workers                   none is upgrading
//	AfterWorkersUpgrade       not pending, or let go                                not pending
//	more to do                the plan has a next version
//	rollouts of workers       the upgrade has begun, or no worker is rolling out
//	BeforeClusterUpgrade      AfterClusterUpgrade is pending, or let go             AfterClusterUpgrade is pending
//	BeforeControlPlaneUpgrade let go                                                AfterControlPlaneUpgrade is pending, and both
//	                                                                                hooks of workers where these are next
//	the control plane gets its next version
//
// AfterClusterUpgrade is called when nothing is left to do, and AfterControlPlaneInitialized when the control plane is initialized;
// neither holds anything back but the webhook, which refuses another version while AfterClusterUpgrade is pending.
//
// # Crashes
//
// Which hooks are pending and which version the control plane gets (upgrade-step) are written to the Cluster before anything
// else, in one write. A control plane that does not have the version of upgrade-step while AfterControlPlaneUpgrade is pending
// gets it without any call. After a hook with handlers let go, no other is called before that was written: no hook is skipped,
// and none is called again for what it let go. Only a crash between an answer and the write that records it repeats a call.
//
// # What waits
//
//	                   keeps its version and spec (frozen)                   is not created
//	control plane      while the plan has versions for it that it may not
//	                   have yet
//	worker             while it has not the version of the topology,         while the control plane is upgrading, scaling or has
//	                   unless it gets its next version now or is deferred    upgrades before it, and while a hook before the
//	                                                                         workers' upgrade blocks
//
// While the rollout of a worker is waited for before an upgrade, workers are not frozen: a change of them may be what ends it.
//
// Owns: what the annotations pending-hooks, upgrade-step and ok-to-delete of Clusters say; the topology controller writes them.
//
// Never: calls hooks, reads or writes objects. Hooks are no security boundary: who may write a Cluster can set its
// annotations.
//
// Read first: [Facts], [Verdict], [Next], then sequence.go.
package lifecycle
