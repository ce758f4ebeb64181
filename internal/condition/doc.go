// Package condition computes the conditions of objects, for all controllers. For each kind a [Table] lists the
// conditions that a controller reports. Each [Row] is a pure function from the controller's snapshot to a [Result];
// [Mirror], [Summarize] and [Aggregate] compute results from other conditions. Only this package sets
// observedGeneration and lastTransitionTime. The deprecated v1beta1 conditions are a projection of the result
// ([Project]). The package does not read or write objects and contains no logic for a particular kind. To change it,
// start with [Row] and [Result], then read combine.go.
//
// The path from the snapshot to the conditions:
//
//	row(snapshot) ──► Result ──► Table.Evaluate ──► []metav1.Condition ──► Project ──► v1beta1 conditions
//	                    ▲
//	      Mirror · Summarize · Aggregate  ◄── conditions of this and of other objects
package condition
