// Package e2e holds the end-to-end tests: the real binary, real nodes in containers, real faults.
//
// Does: starts `slipway up` on data directories of its own, uses the verbs a user would, breaks things on purpose, and
// asserts that nothing is left behind. Needs Docker, the node image and the binary that SLIPWAY_BIN names; `make test`
// sees to all three.
//
// Owns: the data directories and everything labelled with their instances.
//
// Never: reaches beyond this machine: clusters live in internal Docker networks.
//
// Read first: harness_test.go.
package e2e
