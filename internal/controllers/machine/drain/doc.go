// Package drain drains a Node before its machine is deleted or rebooted (`slipway hosts reboot`). It decides which Pods
// have to leave the Node, in which order, and which stay ([Decide]). It evicts Pods through the eviction API, so that
// PodDisruptionBudgets are respected ([Evict]), describes for users which Pods are still awaited and why ([Describe]),
// and lists the volumes that are still attached ([Volumes.Attached]). An [Evict] call never takes longer than
// [evictionsTimeout], and never deletes a Pod that a PodDisruptionBudget protects. To change the package, start with
// [View], then read [Decide].
//
// The steps of a drain, which the Machine controller repeats until no Pod is left:
//
//	MachineDrainRules ─► RulesFor ─┐
//	Node, Pods, …     ─► ReadView ─┴─► View ─► Decide ─► Plan ─► Evict ─► Results ─► Describe
//	                    (reads)               (pure)            (writes)            (pure)
package drain
