// Package cluster finds a Cluster for a person who names it.
//
// Does: reads a Cluster, and when there is none of that name says which there are; checks names before anything is
// written.
//
// Never: writes.
//
// Read first: [Get], [CheckName].
package cluster
