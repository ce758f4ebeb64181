// Package simulated serves workload clusters that have no process: many small Kubernetes APIs in this program.
//
// Does: for each simulated control plane a listener with the cluster's own certificates in front of one API that all
// have in common (package api), with its objects in a keyspace of its own (package store); and what of a cluster is
// not its API server but clients rely on: pods run, end and vanish with their node, disruption budgets have a status,
// namespaces empty themselves (package behaviour). Nodes are made by whoever has the machines. API servers can be made
// slow or unreachable on demand ([Faults]).
//
//	listener per cluster ─► TLS, client certificate ─► api (one for all) ─► store: keyspace per cluster ─► file per cluster
//	                                                      ▲                        │ changes
//	                                                      └────── behaviour ◄──────┘
//
// Owns: the files of its folder, and listeners on the addresses it is told.
//
// Never: knows the management cluster, or makes an authority.
//
// Read first: server.go, then cluster.go.
package simulated
