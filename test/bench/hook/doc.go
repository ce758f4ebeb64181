// Command hook measures what calls of Runtime Extensions cost, and what one that hangs costs the others.
//
//	go run ./test/bench/hook [-slipway bin/slipway] [-time 10m] [-phase 5s] [-out FILE]
//
// Does: serves ten extensions in a process of its own, calls them with package internal/hook as the controllers do, and
// prints latency over the extension's own time, calls a second on one core, connections made, the 99th percentile of nine
// extensions while the tenth hangs, and goroutines and memory over time.
//
// Owns: the process of the extensions, which ends with this one.
//
// Never: fails because a goal is missed. It fails when something could not be measured.
//
// Read first: main.go, then measure.go.
package main
