// Package balancer is the load balancer in front of the API servers of one workload cluster.
//
// Does: listens at the endpoint of a cluster, hands each connection to the API server with the fewest of those that answer,
// and lets one that leaves end what it has begun. It is a process of its own for each cluster, which outlives the program
// that started it: [Keeper] starts it, takes over one that an earlier program started, tells it of other members by a file,
// and stops it.
//
//	client ─► listener ─► healthy member with the fewest connections ─► kube-apiserver
//	                 ▲
//	  members.json ──┘ (written by the Keeper, read every 200 ms)      state.json: who answers
//
// A member that leaves gets no new connection; those that it has stay until they end, or were quiet for two seconds. One
// that does not answer at all loses its connections after three checks, so that clients do not wait for what never comes.
//
// Owns: the processes, and below the Keeper's folder one folder for each.
//
// Never: reads what goes through, holds a key, or knows what a cluster is.
//
// Read first: [Keeper], then balancer.go.
package balancer
