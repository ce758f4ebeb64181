// Command timeline draws where the time goes from the creation of a cluster with real nodes until they are Ready, made from the traces that
// the manager sends.
//
//	go run ./test/bench/timeline [-slipway bin/slipway] [-workers 2] [-out FILE]
//
// Does: starts a management cluster that sends its traces here, creates a cluster of class local in it, and draws the stages of its Machines
// and the reconciliations of each controller on one axis of time. Prints the stages.
//
// Owns: its management cluster, which ends with it.
//
// Never: reads anything but traces: what they do not tell is not in the picture.
//
// Read first: [draw], [receiver].
package main
