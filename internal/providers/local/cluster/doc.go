// Package cluster is the controller of LocalClusters.
//
// Does: keeps one network on the host for each LocalCluster that a Cluster owns, reports it, and offers the host's
// address in it as control plane endpoint where nothing else does. It follows the InfraCluster contract.
//
// Owns: the network; spec.controlPlaneEndpoint while it is empty; status of LocalClusters, with the conditions
// NetworkReady, Deleting and Ready.
//
// Never: touches a LocalCluster that is managed externally or belongs to no Cluster, and never changes
// a network that exists.
//
// Read first: observe.go, then decide.go.
package cluster
