// Package condition turns facts into conditions.
//
// Does: evaluates one table of rows per kind, each row a pure function from the controller's snapshot to a
// [Verdict], into the list of conditions that the controller reports; it alone sets observedGeneration and
// lastTransitionTime. Mirror, summary and aggregate are ways to reach a verdict from other conditions.
// The deprecated v1beta1 conditions are one projection of the result ([Project]).
//
//	row(snapshot) ──► Verdict ──► Table.Evaluate ──► []metav1.Condition ──► Project ──► v1beta1 conditions
//	                    ▲
//	      Mirror · Summarize · Aggregate  ◄── conditions of this and of other objects
//
// Never: reads or writes objects, or knows a kind.
//
// Read first: [Row], [Verdict], then combine.go.
package condition
