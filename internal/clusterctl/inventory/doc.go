// Package inventory is the record of the providers that are installed in a management cluster: one object of kind Provider
// for each, in the namespace of the provider.
//
// Does: reads the record; says what it is of a version of a provider, and which CRD it needs. An installation that has begun
// and not ended is marked as such, so that the next command can complete or delete it.
//
// Owns: kind Provider of clusterctl.cluster.x-k8s.io, and its CRD.
//
// Never: writes; package installation does, as steps of its plan.
//
// Read first: [Provider], then [Read].
package inventory
