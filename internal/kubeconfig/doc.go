// Package kubeconfig reads kubeconfigs that were not written by this program: those of Secrets, which any writer of a
// namespace can change.
//
// Does: turns such a kubeconfig into a client configuration that is made of embedded credentials and an https address
// alone, and refuses everything by which it could reach further: commands and plugins, files, plain HTTP, servers that
// are not verified, impersonation, and proxies and addresses that the operator does not allow.
//
// Owns: the rules about what such a kubeconfig may contain.
//
// Never: connects, reads files or the environment, or is used for the kubeconfig of the person at the command line,
// who may run what they like.
//
// Read first: [Parse].
package kubeconfig
