// Package interop compares Slipway with the reference implementation of Cluster API, and runs the two together.
//
// Does: builds the reference's programs from its module; compares verbs and flags, and the objects that both make of the same
// templates and components; runs the reference's clusterctl against a management cluster of Slipway.
//
// Owns: the only dependency on sigs.k8s.io/cluster-api itself, in a module of its own.
//
// Never: is imported.
//
// Read first: program_test.go; `make interop` runs it.
package interop
