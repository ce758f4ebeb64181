// Package cluster is the verb "create cluster".
//
// Does: finds the class (package class), makes the manifest of a cluster (package manifest), prints it (--dry-run) or applies it (package creation)
// and waits until all nodes are Ready (package progress). What is applied is what --dry-run prints.
//
// Owns: the defaults of the flags.
//
// Never: does anything that `kubectl apply` of the same manifest would not.
//
// Read first: Command, then run.go.
package cluster
