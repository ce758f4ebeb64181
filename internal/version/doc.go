// Package version counts replicas by the Kubernetes version that they have.
//
// Does: adds up what the status field `versions` of every kind says, and puts the versions in order.
//
// Owns: nothing.
//
// Never: judges whether versions may stand beside each other; that is said where it matters.
//
// Read first: [Counts].
package version
