// Package cluster is the controller of LocalClusters. It manages one network on the host for each LocalCluster that a
// Cluster owns, reports it in the status, and sets the host's address in it as the control plane endpoint if nothing
// else provides one. It also runs the load balancer of a control plane on machines. It implements the InfraCluster
// contract. It ignores LocalClusters that are managed externally or owned by no Cluster, and never changes an existing
// network. Package local adds the controller to the manager ([Add]).
package cluster
