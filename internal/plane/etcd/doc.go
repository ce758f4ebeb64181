// Package etcd runs one etcd member inside this process.
//
// Does: starts a single-member etcd that listens on unix sockets only, in a
// folder that only this user can enter, so that nothing on any network reaches
// it; waits until it serves.
//
// Owns: the etcd data folder and the sockets.
//
// Never: opens a TCP port, forms a cluster of several members, takes backups.
//
// Read first: Start.
package etcd
