// Package snapshots takes snapshots of etcd into a store, and gets them back.
//
// # Does
//
// Streams a snapshot from a source into a store, encrypted with age where there are recipients, and writes a manifest beside
// it when all of it is there: a snapshot without a manifest is none. Lists what a store has of a cluster, fetches a snapshot to
// a file and checks it against its manifest, removes snapshots, and what interrupted ones have left. No snapshot is in memory
// as a whole.
//
//	<namespace>/<cluster>/<cluster>-20261125T120000Z.db or .db.age    the snapshot, as etcd's own tools read it
//	<namespace>/<cluster>/<cluster>-20261125T120000Z.json             its manifest
//
// # Owns
//
// The format of manifests and the names of files.
//
// # Never
//
// Decides when a snapshot is taken or removed (package providers/etcdsnapshots does), connects to etcd, or opens a database:
// what a snapshot has in it is the tenant's.
//
// # Read first
//
// [Manifest], then [Take] and [Fetch].
package snapshots
