// Package etcd runs one etcd member in this process ([Start]). The member listens on Unix sockets only, in a
// directory that only its user can enter, so that it is not reachable over any network. It is always the only
// member of its cluster.
//
// The sockets are in the first of these directories that is possible. A path that is too long for a socket
// rules out the first one, and a directory that another user prepared rules out the second one:
//
//	the data directory
//	$TMPDIR/slipway-<hash of the path of the data directory>
//	$TMPDIR/slipway-sockets-<random>, recorded in the file socket-folder of the data directory
package etcd
