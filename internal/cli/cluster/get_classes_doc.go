// Package classes implements the get classes command. It prints the ClusterClasses of the management cluster, including
// the ones that are part of Slipway, with their workers, variables and clusters.
package cluster
