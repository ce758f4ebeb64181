// Package delete is the verb "delete".
//
// Does: groups the verbs below it; with the flags of clusterctl it deletes providers.
//
// Never: does anything itself.
//
// Read first: the packages cluster and provider.
package delete
