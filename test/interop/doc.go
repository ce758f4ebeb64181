// Package interop compares Slipway with the reference implementation of Cluster API, and runs the two together.
//
// Does: builds the reference's programs from its module; compares verbs and flags, and the objects that both make of the same
// templates and components; runs the reference's clusterctl against a management cluster of Slipway; runs the reference's tests of its
// webhooks, unchanged, in a copy of its module whose webhooks send reviews to ours. testdata/webhooks.yaml lists the differences.
//
// Owns: the only dependency on sigs.k8s.io/cluster-api itself, in a module of its own.
//
// Never: is imported.
//
// Read first: program_test.go; `make interop` runs it.
package interop
