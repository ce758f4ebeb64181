// Package simulated serves simulated workload clusters: many small Kubernetes APIs in this process. Each simulated
// control plane has a listener with the cluster's certificates in front of one api that all clusters share (package
// api), and stores its objects in a separate keyspace (package store). Package behaviour simulates the parts of a
// cluster outside the api server that clients rely on: Pods run, terminate and disappear with their Node, disruption
// budgets have a status, and deleted namespaces are emptied. Callers create the Nodes. [Faults] make api servers slow
// or unreachable.
//
//	listener per cluster ─► TLS, client certificate ─► api (one for all) ─► store: keyspace per cluster ─► file per cluster
//	                                                       ▲                        │ changes
//	                                                       └────── behaviour ◄──────┘
//
// The package does not access the management cluster, and does not create certificate authorities. Start with
// server.go, then cluster.go.
package simulated
