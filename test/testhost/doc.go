// Package testhost implements package backend in memory, for tests of the Local controllers only. A [Host] can fail on
// demand, so that tests can interrupt every step of a plan once.
package testhost
