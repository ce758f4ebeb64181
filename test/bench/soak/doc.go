// Command soak lets Slipway live through half an hour of everything at once, and says whether anything is left over.
//
//	go run ./test/bench/soak -slipway bin/slipway [-manifest FILE] [-time 30m] [-clusters N] [-kill 1m] [-seed N] [-out FILE]
//
// Does: makes simulated clusters, also of a class and with control planes on Machines, then scales, rolls out, deletes Machines,
// makes nodes, members of etcd and APIs fail, moves clusters to another management cluster and back, deletes them and creates
// them again, in an order that the seed decides, while the manager is killed again and again, and an extension whose hooks are
// called for clusters of a class answers every other time with something that is no answer. In the end every fault is taken back, and it waits until
// every Cluster is Available and every MachineDeployment whole. Then it looks for what should not be there: objects without owner,
// Nodes without Machine, what is left in the other management cluster, goroutines and files that a fresh manager does not have,
// memory that grew.
//
// Owns: a temporary installation.
//
// Never: measures speed; that is package fleet.
//
// Read first: soak.go.
package main
