// Package clusters is the controller of SSHClusters. It reports the control plane endpoint of a cluster, which the user, the
// Cluster or the control plane provides, and the failure domains of the SSHHosts that are offered to its namespace. It
// also configures a virtual IP address on the hosts of the control plane (virtualip.go). It implements the InfraCluster
// contract, and ignores SSHClusters that are managed externally or owned by no Cluster. Package ssh adds the controller
// to the manager ([Add]).
package clusters
