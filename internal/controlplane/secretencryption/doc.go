// Package secretencryption encrypts the Secrets of the management cluster at rest. It creates the first key,
// writes the encryption configuration of kube-apiserver ([Files.Prepare]), rewrites Secrets that are stored as
// plain text or under another key, verifies in etcd that none is left, and only then removes the other keys
// ([Rewriter]). [Files.Rotate] replaces a key by adding a new one at the front; the remaining steps follow
// automatically and continue after an interruption. The API server does the encryption itself. Package controlplane
// prepares the files and runs the [Rewriter] at each start of the management cluster. `slipway status` reads the state.
//
// The files of the package:
//
//	DIR/pki/encryption-keys.json   the keys, the first one encrypts
//	DIR/pki/encryption.json        the configuration for kube-apiserver
//	DIR/encrypted-with.json        the keys that the data needs: if one of them is missing, nothing is started
package secretencryption
