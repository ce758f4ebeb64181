// Package datadir is the layout and the guard of Slipway's data directory.
//
// Does: names every path below the data directory, creates it with mode 0700,
// checks that its format is one this binary reads, holds the lock that keeps
// a second process out and says who holds it, keeps the stable instance id,
// and records what runs (run.json) for other processes to read.
//
// Owns: the files version, instance, lock and run.json.
//
// Never: looks into the certificates, the etcd data or the log files that
// other packages keep below the same directory.
//
// Read first: Dir, Open.
package datadir
