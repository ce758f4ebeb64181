// Package cluster reads a Cluster by name, with a helpful error if it does not exist ([Get]), and validates the names
// of new clusters ([CheckName]).
package cluster
