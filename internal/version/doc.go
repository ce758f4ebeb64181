// Package version reads and compares Kubernetes versions, and counts replicas by the version that they have.
//
// Does: reads versions as people and providers write them, and says which of two is older ([Version]). Says whether a kubelet
// runs the version of a spec, whatever suffix a distribution gave it ([Runs]). Adds up what the status field `versions` of
// every kind says, and puts the versions in order ([Counts]).
//
// Never: judges whether versions may stand beside each other; that is said where it matters.
//
// Read first: [Version], [Counts].
package version
