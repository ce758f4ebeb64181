// Package fleet computes the rows of the lists of clusters, Machines and Nodes of a management cluster. The rows are
// computed from objects alone: versions and counters from the status of Clusters and Machines, and the reason of a
// problem from the root cause chain (package rootcause). Workload clusters are not read. `slipway get clusters`,
// `slipway get machines`, `slipway get nodes` and package ui show the rows.
//
//	cluster.go  rows of clusters        health.go  Problem, Changing, Paused or Healthy, as a decision table
//	machine.go  rows of Machines        sort.go    order by name, or by trouble
//	node.go     rows of Nodes           board.go   the rows of all clusters, computed again only after changes
package fleet
