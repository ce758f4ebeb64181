// Package snapshots takes, stores and retrieves etcd snapshots. [Take] streams a snapshot from a source to a store,
// encrypts it with age if there are recipients, and writes a manifest once the snapshot is complete; snapshots without
// a manifest are ignored. [fetchSnapshot] writes a snapshot to a file and verifies it against its manifest. The package
// also parses the schedule of an EtcdSnapshotPolicy ([ParseSchedule]), opens the store of a policy if the operator's
// configuration allows it ([StoreSettings.Open]), and finds the snapshot of a restore request ([Retriever.Find]).
// Package internal/hosted/snapshots decides when snapshots are taken and removed; packages internal/hosted and
// internal/local/machine retrieve them for restores. Jobs of package internal/jobs take and retrieve them outside of
// reconciliations. Snapshots are always streamed and never held in memory as a whole. Databases are not opened here,
// because their content belongs to the tenant.
//
// A [Store] is a folder of this host or a bucket of an S3-compatible store. Its files are written from streams and
// appear only when complete. Their names are relative paths with slashes and cannot escape the folder or the prefix of
// the bucket. Package policy decides who may use which folder or endpoint.
//
// The files of a snapshot in a store:
//
//	<namespace>/<cluster>/<cluster>-20261125T120000Z.db or .db.age    the snapshot, in the format of etcd's own tools
//	<namespace>/<cluster>/<cluster>-20261125T120000Z.json             its manifest
package snapshots
