// Package drain empties a Node before its machine goes away.
//
// Does: decides which Pods of a Node have to leave, in which order, and which stay ([Decide]); asks
// them to leave through the eviction API, so that PodDisruptionBudgets hold ([Evict]); says for users what is
// still waited for and why ([Describe]); finds the volumes that are still attached ([Volumes.Attached]).
//
//	MachineDrainRules ─► RulesFor ─┐
//	Node, Pods, …     ─► Look ─────┴─► View ─► Decide ─► Plan ─► Evict ─► Results ─► Describe
//	                    (reads)               (pure)            (writes)            (pure)
//
// Never: blocks for longer than the [Budget] of a pass, or deletes a Pod past a PodDisruptionBudget.
//
// Read first: [View], then [Decide].
package drain
