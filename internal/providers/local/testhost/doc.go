// Package testhost is a host for tests of the Local controllers.
//
// Does: keeps networks and machines in memory behind the verbs of package backend, and fails on demand, so that every
// step of a plan can be interrupted once.
//
// Never: is used by the product.
//
// Read first: [Host].
package testhost
