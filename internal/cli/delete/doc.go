// Package delete is the verb "delete".
//
// Does: groups the verbs below it.
//
// Never: does anything itself.
//
// Read first: the package cluster.
package delete
