// Package migration migrates stored objects after a change of their CRD. Once for each generation of one of
// Slipway's CRDs, it rewrites objects that may be stored in an older version, sets status.storedVersions to
// the storage version, and removes managed fields entries in versions that are no longer served. The
// annotation crd-migration.cluster.x-k8s.io/observed-generation records the migrated generation. The content
// of the objects does not change. Start at [decide].
package migration
