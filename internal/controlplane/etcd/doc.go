// Package etcd runs one etcd member in this process ([Start]). The member listens on Unix sockets only, in a directory
// that only its user can enter, so that it is not reachable over any network. It is always the only member of its
// cluster. [ApplyRestore] replaces the data of a hosted control plane with an etcd snapshot. Package controlplane calls
// both; only the process of a hosted control plane restores. `slipway status` reads the size of the database, and
// `slipway move` and package hosted/snapshots locate the sockets. The hidden command etcd-data creates a data directory
// from a snapshot.
//
// The sockets are in the first of these directories that is possible. A path that is too long for a socket
// rules out the first one, and a directory that another user prepared rules out the second one:
//
//	the data directory
//	$TMPDIR/slipway-<hash of the path of the data directory>
//	$TMPDIR/slipway-sockets-<random>, recorded in the file socket-folder of the data directory
//
// A restore runs in the process of the control plane before its etcd starts, because a tenant controls the
// content of the snapshot, and a damaged database can crash the process that opens it. It creates a new data
// directory, moves the previous one aside, and records the restore; existing data is not touched before the
// snapshot is known to be usable. An interrupted restore continues at the next call. Revisions continue far
// beyond the revisions in the snapshot, and all revisions of the snapshot count as compacted, so that watching
// clients list again and do not mistake old objects for new ones.
package etcd
