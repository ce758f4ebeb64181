// Package upgrade is the verb "upgrade".
//
// Does: groups the verbs below it.
//
// Never: does anything itself.
//
// Read first: the package cluster.
package upgrade
