// Package generate is the verb "generate".
//
// Does: groups the verbs below it.
//
// Never: does anything itself.
//
// Read first: the package cluster.
package generate
