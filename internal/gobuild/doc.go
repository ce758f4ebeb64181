// Package gobuild compiles programs from Go modules, together with one version of Kubernetes.
//
// Does: makes the go.mod that a program of Kubernetes needs outside of its own tree, has the Go toolchain of this host
// compile it, and keeps each result under the hash of what it is made from, so that it is made once.
//
// Owns: the folder of its Store.
//
// Never: knows what the programs are for (internal/nodeimage, internal/releases).
//
// Read first: [Store], [ModuleMaker], [Toolchain].
package gobuild
