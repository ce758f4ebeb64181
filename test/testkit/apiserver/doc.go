// Package apiserver runs a real Kubernetes API server for tests: the management cluster of the slipway binary, with a
// temporary data directory and a free loopback port. It builds the binary once per machine and source state (or uses
// the one that SLIPWAY_BIN names), runs it as a child process that ends with the test process even if that is killed,
// installs CRDs and objects, and returns the client configuration of an administrator. It runs no controllers or
// webhooks of Slipway, and does not link the code of the Kubernetes servers into the test. Start with [Main], [Start]
// and [CRDs].
package apiserver
