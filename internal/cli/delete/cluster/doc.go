// Package cluster is the verb "delete cluster".
//
// Does: asks for the deletion of a Cluster and waits until it is gone, with everything that belongs to it (package
// progress).
//
// Never: removes anything itself; the controllers do, in their order.
//
// Read first: Command.
package cluster
