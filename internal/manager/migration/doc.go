// Package migration brings stored objects up to date with the CRDs of this program.
//
// Does: once for every generation of one of our CRDs, has the API server write the objects that it may hold in an older
// version in the version that it stores now, records that only this one is stored, and removes from the objects what
// they remember of field managers in versions that are not served any more.
//
// Owns: status.storedVersions and the annotation crd-migration.cluster.x-k8s.io/observed-generation of our CRDs.
//
// Never: changes what an object says.
//
// Read first: [Decide].
package migration
