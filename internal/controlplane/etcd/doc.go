// Package etcd runs one etcd member in this process. The member listens on Unix sockets only, in a directory
// that only its user can enter, so that it is not reachable over any network. It is always the only member of
// its cluster. Start at [Start].
package etcd
