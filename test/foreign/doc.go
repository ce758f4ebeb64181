// Package foreign proves that providers which are not Slipway's work with its core.
//
// Does: runs a small provider of both contracts (package provider) against `slipway manager` with the manager's own rights, over a
// real API server that is management and workload cluster at once, and plays a table of checks: each is a subtest with its number.
//
// Never: imports the reference implementation; test/interop does.
//
// Read first: provider.Kinds, then foreign_test.go.
package foreign
