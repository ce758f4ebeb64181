// Package testvm is a tiny backend of virtual machines in memory, for tests: proof that a backend is a folder of its own.
//
// Does: boots a machine for as long as it is told to, runs bootstrap data in it and tells how that went. Its facts are
// others than those of containers and simulated machines: no event tells of anything, there is no network and no image,
// and a machine that was provisioned stays lost.
//
// Never: pretends: what a test has not said of a machine is not so.
//
// Read first: [Host].
package testvm
