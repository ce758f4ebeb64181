// Package drain empties a Node before its machine goes away.
//
// Does: decides which Pods of a Node have to leave, in which order, and which stay ([Decide], MD-05 to MD-08); asks
// them to leave through the eviction API, so that PodDisruptionBudgets hold ([Evict], MD-04); says for users what is
// still waited for and why ([Describe], MD-10); finds the volumes that are still attached ([Attached], MD-12).
//
//	MachineDrainRules ─► RulesFor ─┐
//	Node, Pods, …     ─► Look ─────┴─► View ─► Decide ─► Plan ─► Evict ─► Results ─► Describe
//	                    (reads)               (pure)            (writes)            (pure)
//
// Never: blocks for longer than the [Budget] of a pass, or deletes a Pod past a PodDisruptionBudget.
//
// Read first: [View], then [Decide].
package drain
