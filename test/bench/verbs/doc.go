// Command verbs measures the verbs of clusterctl on many objects.
//
//	go run ./test/bench/verbs [-slipway bin/slipway] [-reference clusterctl] [-clusters 100] [-backup 1000] [-out FILE]
//
// Does: installs a release of four providers into a management cluster without controllers, describes a Cluster with 1000 Machines
// and saves many Clusters there; moves simulated Clusters from one `slipway up` to another, and back with the reference where it is
// named. Prints times, memory and requests.
//
// Owns: its management clusters, which end with it.
//
// Never: fails because a goal is missed. It fails when something could not be measured.
//
// Read first: measure.go.
package main
