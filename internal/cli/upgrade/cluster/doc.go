// Package cluster is the verb "upgrade cluster".
//
// Does: shows what an upgrade will do (package upgrade of the library), asks, writes the version, and waits until the control plane
// and all nodes have it (package progress).
//
// Never: does anything that a change of spec.topology.version would not.
//
// Read first: Command.
package cluster
