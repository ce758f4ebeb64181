// Package version reads and compares Kubernetes versions, and counts replicas by the version that they have.
//
// Does: reads versions as people and providers write them, and says which of two is older ([Version]). Says whether a kubelet
// runs the version of a spec, whatever suffix a distribution gave it ([Runs]), and whether a kubelet of a version can join API
// servers that run others ([Span]). Adds up what the status field `versions` of every kind says, and puts the versions in
// order ([Counts]).
//
// Never: words for users why a version does not fit; package machines/preflight and the webhooks do.
//
// Read first: [Version], [Span], [Counts].
package version
