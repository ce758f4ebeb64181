// Package atrest encrypts the Secrets of the management cluster in its etcd.
//
// Does: makes the first key, writes the configuration that kube-apiserver reads, rewrites what is stored under another key or as
// plain text, proves by what is in etcd that nothing else is left, and only then forgets the other keys. A key is replaced by
// putting a new one in front ([Rotate]); everything after that follows, also when a process ends in between.
//
// Owns: the files encryption-keys.json and encryption.json in the folder of keys, and encrypted-with.json in the data directory, which
// says which keys the data needs: without one of them nothing is started.
//
// Never: encrypts itself (the API server does), shows a key, or removes one that data may need.
//
// Read first: [Prepare], then [Keeper.step].
package atrest
