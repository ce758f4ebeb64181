// Package manager implements the manager command, which runs the controllers against the Kubernetes cluster of a
// kubeconfig, or the one that the process runs in, with the flags of Cluster API's managers. Package internal/manager
// runs the controllers; this package converts flags to its configuration, and rejects a start that would conflict with
// another manager, before anything is written. The hidden up-manager command is the same manager for "slipway up", with
// the configuration that its parent process sends ([EmbeddedCommand]).
//
// A start makes these checks in this order; each fails with a remedy:
//
//	flags             invalid values
//	data directory    in use, or of another management cluster
//	other manager     its webhooks respond, or the reference implementation of a provider is installed
//	ports             in use, or the address does not belong to this machine
//	API server        unreachable at the first request
//
// After the first successful request, a lost connection is retried. The record of the manager in the data directory
// (datadir.go) remains after it stops, so that other commands can find it and print its command line.
package manager
