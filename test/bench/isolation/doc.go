// Command isolation measures what clusters whose API does not work do to the other clusters of the same Slipway.
//
//	go run ./test/bench/isolation -slipway bin/slipway [-clusters N] [-sick N] [-workers N] [-phase TIME] [-rounds N]
//	    [-every TIME] [-patience TIME] [-out FILE] [-manifest FILE]
//
// Does: makes simulated clusters, changes a label of a Machine of each at a steady rate, and measures how long each change
// takes to arrive on the Node, through the workload API, and which part of that came after the management cluster had shown
// it. In turns all clusters are well, and some of them (the sick ones, which have more workers) are down, slow, hang, or
// answer with errors; only the others are measured. The phases in which all are well are compared with each other too: what
// they differ by is the machine. While the host gives the processors to others it waits. Prints a table, writes JSON, a
// drawing (.svg), and each change (.csv).
//
// Owns: the temporary installation that it makes.
//
// Never: fails because a goal is missed. It fails when something could not be measured.
//
// Read first: run.go, then load.go and package host. docs/bench/isolation.md says what each figure means.
package main
