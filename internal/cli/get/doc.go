// Package get is the verb "get".
//
// Does: groups the verbs below it.
//
// Never: does anything itself.
//
// Read first: the packages classes, clusters and kubeconfig.
package get
