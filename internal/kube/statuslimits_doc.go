// Package statuslimits removes values that the API would reject from a status before it is written ([Limits.Bound]).
// Much of a status comes from a provider or a workload cluster, which may report anything, and one rejected value would
// prevent all others from being written. The package compiles the schemas of CRDs once, when the manager starts, and
// checks every status against them. It enforces only constraints that are in the schema.
package kube
