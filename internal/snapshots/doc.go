// Package snapshots takes, stores and retrieves etcd snapshots. [Take] streams a snapshot from a source to a store,
// encrypts it with age if there are recipients, and writes a manifest once the snapshot is complete; snapshots without
// a manifest are ignored. [fetchSnapshot] writes a snapshot to a file and verifies it against its manifest. The package
// also parses the schedule of an EtcdSnapshotPolicy ([ParseSchedule]), opens the store of a policy if the operator's
// configuration allows it ([StoreSettings.Open]), finds the snapshot of a restore request ([Retriever.Find]), and runs
// operations that take minutes outside of reconciliations ([Jobs]). Package internal/hosted/snapshots decides when
// snapshots are taken and removed; packages internal/hosted and internal/local/machine retrieve them for restores.
// Snapshots are always streamed and never held in memory as a whole. Databases are not opened here, because their
// content belongs to the tenant.
//
// The files of a snapshot in a store:
//
//	<namespace>/<cluster>/<cluster>-20261125T120000Z.db or .db.age    the snapshot, in the format of etcd's own tools
//	<namespace>/<cluster>/<cluster>-20261125T120000Z.json             its manifest
//
// Only a few jobs run at a time, and only one per namespace, so that a tenant's slow etcd or store does not
// delay other tenants. Jobs are not retried and do not survive a restart of the process: a controller that
// finds no job for its key starts one.
package snapshots
