// Package managed validates ClusterClasses and the topologies of Clusters. [validateClass] validates a class and, on
// update, the Clusters that use it; [refuseTopologyDeletion] prevents the deletion of a class in use; [checkCompatible] checks
// whether a Cluster can change from one class to another; [ValidateTopology] and [defaultTopology] handle the topology
// of a Cluster with its class. The functions are pure; the requests include the state of other objects.
package admission
