// Package api is one Kubernetes API for many small clusters.
//
// Does: puts the storage layer of kube-apiserver (its REST stores, validation, field management, evictions, watches)
// over the keyspaces of package store, once for all clusters. Which cluster a request is about is in its context
// ([Into]); the server of each cluster sets it. Requests are authenticated with client certificates of the cluster's
// own authority and authorized by its own RBAC objects; the groups system:masters and kubeadm:cluster-admins may do
// everything.
//
// Never: listens, or plays the parts of a cluster that are not its API server (package behaviour).
//
// Read first: api.go, then groups.go.
package api
