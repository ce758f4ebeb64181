// Package cluster finds a Cluster for a person who names it.
//
// Does: reads a Cluster, and when there is none of that name says which there are; checks names and Kubernetes
// versions before anything is written.
//
// Never: writes.
//
// Read first: [Get], [Check].
package cluster
