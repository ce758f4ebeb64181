// Package simulation tests the controllers together. One part runs them over a real API server that is management and
// workload cluster at once, where the test takes the part of the providers, and counts the writes that a cluster needs.
// The other part runs them over an API in memory, one reconciliation at a time: a rollout in random orders, each
// scenario once with a golden file in testdata, and the restore of a management cluster whose objects appear in random
// orders.
package simulation
