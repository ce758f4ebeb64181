// Package cluster reads a Cluster by name, with a helpful error if it does not exist ([GetCluster]), and validates the names
// of new clusters ([CheckName]).
package describe
