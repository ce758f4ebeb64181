// Package get is the verb "get".
//
// Does: groups the verbs below it.
//
// Never: does anything itself.
//
// Read first: the package kubeconfig.
package get
