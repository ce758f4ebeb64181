// Command bench measures how fast and how small Slipway is on this machine.
//
//	go run ./test/bench -slipway bin/slipway [-out FILE] [-only NAME,...] [-manifest FILE] [-runs N] [-idle TIME]
//
// Does: starts management clusters with the real binary, makes the cluster of the quickstart in one, and prints what it
// took as a table; makes clusters of a class and of kubeadm in others; writes the same as JSON, a drawing of memory and
// processor use beside it (.svg), and the samples that it is drawn from (.csv). docs/bench/README.md says what each figure
// means.
//
// Owns: the temporary data directories that it makes; they are removed with all that is in them, also when it fails or is
// interrupted.
//
// Never: fails because a goal is missed. It fails when something could not be measured, and still writes the rest.
//
// Read first: main.go, then quickstart.go. What computes is in pure functions of usage.go, manifest.go, functions.go and
// the packages below; the rest only measures.
package main
