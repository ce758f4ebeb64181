// Package api serves one Kubernetes api for many small clusters. It combines the storage layer of kube-apiserver (REST
// stores, validation, field management, evictions, watches) with the keyspaces of package store, once for all clusters.
// The server of each cluster selects the cluster of a request in its context ([withTenant]). Requests are authenticated with
// client certificates of the cluster's certificate authority and authorized by the RBAC objects of the cluster; the
// groups system:masters and kubeadm:cluster-admins have full access. The package does not listen on the network.
// Package behaviour simulates the other components of a cluster. Start with api.go, then groups.go.
package simulated
