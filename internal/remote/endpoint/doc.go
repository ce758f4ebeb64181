// Package endpoint is about the API server at the end of a connection to a workload cluster.
//
// Does: makes the transport of a connection, finds out whether an API server of Kubernetes answers there ([Probe]) and why none
// does, recognizes the cluster that this process runs in and the addresses that Slipway chose, and lists the kinds that every API server has.
//
// Never: decides when to connect, or caches what is read (package remote does).
//
// Read first: [Probe].
package endpoint
