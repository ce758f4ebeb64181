// Package snapshots stores and retrieves etcd snapshots. It streams a snapshot from a source to a store, encrypts it
// with age if there are recipients, and writes a manifest once the snapshot is complete; snapshots without a manifest
// are ignored. It lists the snapshots of a cluster, fetches a snapshot to a file and verifies it against its
// manifest, and removes snapshots and the remains of interrupted ones. Snapshots are always streamed and never held
// in memory as a whole.
//
//	<namespace>/<cluster>/<cluster>-20261125T120000Z.db or .db.age    the snapshot, in the format of etcd's own tools
//	<namespace>/<cluster>/<cluster>-20261125T120000Z.json             its manifest
//
// The package defines the manifest format and the file names. Package providers/etcdsnapshots schedules and prunes
// snapshots. Databases are not opened here, because their content belongs to the tenant. Start reading at [Manifest],
// [Take] and [Fetch].
package snapshots
