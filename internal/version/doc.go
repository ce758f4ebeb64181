// Package version counts replicas by the Kubernetes version that they have, and compares what a kubelet says with a spec.
//
// Does: adds up what the status field `versions` of every kind says, and puts the versions in order. Says whether a kubelet
// runs the version of a spec, whatever suffix a distribution gave it ([Runs]).
//
// Owns: nothing.
//
// Never: judges whether versions may stand beside each other; that is said where it matters.
//
// Read first: [Counts].
package version
