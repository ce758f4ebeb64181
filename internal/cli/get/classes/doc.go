// Package classes is the verb "get classes".
//
// Does: prints the ClusterClasses of the management cluster with their workers, variables and clusters, and those that come with
// Slipway.
//
// Never: writes.
//
// Read first: Command.
package classes
