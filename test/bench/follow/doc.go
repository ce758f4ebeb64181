// Package follow watches objects of a cluster and reads what benchmarks want to know of them.
//
// Does: calls back with all objects of a kind when one has changed; reads numbers, booleans and conditions by path;
// finds the way to a workload cluster.
//
// Never: writes.
//
// Read first: [Objects.Until].
package follow
