// Package atrest encrypts the Secrets of the management cluster at rest. It creates the first key, writes the
// encryption configuration of kube-apiserver, rewrites Secrets that are stored as plain text or under another
// key, verifies in etcd that none is left, and only then removes the other keys. [Files.Rotate] replaces a
// key by adding a new one at the front; the remaining steps follow automatically and continue after an
// interruption. The API server does the encryption itself.
//
// The files encryption-keys.json and encryption.json are in the PKI directory. The file encrypted-with.json
// in the data directory records the keys that the data needs: if one of them is missing, nothing is started.
// Start at [Files.Prepare] and [Keeper.step].
package secretencryption
