// Package balancer implements the load balancer in front of the API servers of one workload cluster. It listens on the
// endpoint of the cluster and forwards each connection to the healthy API server with the fewest connections. Each
// cluster has its own load balancer process, which outlives the program that started it. A [Supervisor] starts the process
// or adopts a running one, updates its members through a file, and stops it.
//
//	client ─► listener ─► healthy member with the fewest connections ─► kube-apiserver
//	                 ▲
//	  members.json ──┘ (written by the Keeper, read every 200 ms)      state.json: healthy members
//
// A leaving member gets no new connections; its connections remain open until they end or have been idle for two
// seconds. The connections of a member that does not respond at all are closed after three checks, so that clients do
// not wait in vain. The load balancer forwards TLS without terminating it and holds no keys.
package loadbalancer
