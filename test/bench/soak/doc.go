// Command soak lets Slipway live through half an hour of everything at once, and says whether anything is left over.
//
//	go run ./test/bench/soak -slipway bin/slipway [-time 30m] [-clusters N] [-kill 1m] [-seed N] [-out FILE]
//
// Does: makes simulated clusters, then scales, rolls out, deletes Machines, makes nodes and APIs fail, deletes and makes
// clusters anew, in an order that the seed decides, while the manager is killed again and again. In the end every fault
// is taken back, and it waits until every Cluster is Available and every MachineDeployment whole. Then it looks for what
// should not be there: objects without owner, Nodes without Machine, goroutines and files that a fresh manager does not
// have, memory that grew.
//
// Owns: a temporary installation.
//
// Never: measures speed; that is package fleet.
//
// Read first: soak.go.
package main
