// Package loadbalancer implements the load balancer in front of the API servers of one workload cluster. A [balancer]
// listens on the endpoint of the cluster and forwards each connection to the healthy API server with the fewest
// connections; it forwards TLS without terminating it and holds no keys. Each cluster has its own load balancer process
// ([RunInFolder], run by a hidden command), which outlives the program that started it, so that a restart of the
// manager does not interrupt the clients of a cluster. A [Supervisor] starts the process or adopts a running one,
// updates its members through a file, and stops it. Package manager creates the Supervisor, and the container backend
// (package local/container) calls it. `slipway down` and the end of `slipway up` stop all processes ([StopAll]).
//
// While another member is healthy, a leaving member gets no new connections, and its connections are closed once they
// have been idle for two seconds. The connections of a member that does not respond at all are closed after three
// checks, so that clients do not wait in vain.
//
// The process and its files:
//
//	client ─► listener ─► healthy member with the fewest connections ─► kube-apiserver
//	                 ▲
//	  members.json ──┘ (written by the Supervisor, read every 200 ms)      state.json: healthy members
package loadbalancer
