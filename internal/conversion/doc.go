// Package conversion turns objects of Cluster API's groups from one served version into another.
//
// Does: Convert, for every kind that has more than one version. v1beta2 is the hub: every other version (a spoke) is
// turned into it, and made from it. The functions for each field come from the API module; what they leave to their
// caller is here: references (which name a version in a spoke and a contract in the hub), fields that moved, zeros.
//
// Nothing is lost on the way hub → spoke → hub. What a spoke has no place for travels in the annotation
// cluster.x-k8s.io/conversion-data, which holds the hub's content and is there only when needed. On the way back the
// change that was made to the spoke is found by comparing it with the spoke of an unchanged hub, and made to the hub
// (merge.go): so no field needs code of its own to survive.
//
// On the way spoke → hub → spoke these come back in their normal form: the version in a reference is the one that
// serves the contract now, its namespace is the object's, uid and the like are dropped; durations are whole seconds;
// false and 0 where the hub tells them from absent are absent; fields that nothing reads any more
// (progressDeadlineSeconds, useExperimentalRetryJoin, a ref's fieldPath) are dropped.
//
// Owns: the annotation cluster.x-k8s.io/conversion-data.
//
// The annotation is a client's to write, so what comes from it was judged by no schema: package webhook does that, with the help
// of Expressed.
//
// Never: HTTP; package webhook serves it. No clock, no I/O besides the given VersionOf.
//
// Read first: convert.go.
package conversion
