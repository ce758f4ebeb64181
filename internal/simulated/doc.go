// Package simulated serves simulated workload clusters for the backends internal/hosted/simulated and
// internal/local/simulated: many small Kubernetes APIs in this process, which cost a fraction of a real control plane.
// A [Server] has one listener per cluster with the cluster's certificates, in front of one api that all clusters share.
// The api is the storage layer of kube-apiserver (REST stores, validation, field management, evictions, watches) on the
// keyspaces of package store, one keyspace per cluster; the context of a request selects the cluster ([withTenant]).
// Requests are authenticated with client certificates of the cluster's certificate authority and authorized by the RBAC
// objects of the cluster; the groups system:masters and kubeadm:cluster-admins have full access. The package does not
// access the management cluster.
//
// The [simulator] does the work of the other components of a cluster on which clients rely. Pods that are bound to a
// Node run immediately, terminate immediately when they are deleted, and disappear with their Node. The
// PodDisruptionBudget controller of Kubernetes runs for clusters with budgets and updates their status, and the
// namespace deleter of Kubernetes empties deleted namespaces and removes their finalizer. Pods are not scheduled or
// created for Deployments and DaemonSets, there is no garbage collection, and callers create the Nodes. All clusters
// share a few workers, which process changes of keys; a cluster without changes uses no resources. [Faults] make api
// servers slow or unreachable.
//
// The path of a request, and of a change to the simulator:
//
//	listener per cluster ─► TLS, client certificate ─► api (one for all) ─► store: keyspace per cluster ─► file per cluster
//	                                                       ▲                        │ changes
//	                                                       └────── simulator ◄──────┘
package simulated
