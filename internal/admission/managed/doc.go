// Package managed decides which ClusterClasses, and which topologies of Clusters, are admitted.
//
// Does: ValidateClass for a class that is created or changed, with the Clusters that use it; RefuseDeletion; Compatible, whether a
// Cluster may go from one class to another; ValidateTopology and DefaultTopology for the topology of a Cluster, with its class.
//
// Never: I/O: what is read of other objects is part of the requests.
//
// Read first: class.go and topology.go.
package managed
