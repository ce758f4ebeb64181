// Package datadir is the layout and the guard of Slipway's data directory.
//
// Does: names every path below the data directory, creates it with mode 0700,
// checks that its format and the versions that wrote it are ones this binary
// reads, holds the lock that keeps a second process out and says who holds it,
// keeps the stable instance id, records what runs (run.json) for other
// processes to read, what its supervisor does (supervision.json) and the flags of a start (flags.json) for the next one, reads
// the free space of the disk, and removes what is slipway's.
//
// Owns: the files version, written-by.json, instance, lock, run.json, supervisor.lock, supervision.json and flags.json.
//
// Never: looks into the certificates, the etcd data or the log files that
// other packages keep below the same directory.
//
// Read first: Dir, Open.
package datadir
