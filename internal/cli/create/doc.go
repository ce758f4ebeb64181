// Package create is the verb "create".
//
// Does: groups the verbs below it.
//
// Never: does anything itself.
//
// Read first: the package cluster.
package create
