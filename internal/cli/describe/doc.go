// Package describe is the verb "describe".
//
// Does: groups the verbs below it.
//
// Never: does anything itself.
//
// Read first: the package cluster.
package describe
