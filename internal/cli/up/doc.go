// Package up is the verb "up".
//
// Does: takes the data directory, starts the management cluster and the
// controllers in this process, tells how far it is, and stops all parts in
// order when asked; with --detach it starts itself again in the background and
// waits until that one is ready.
//
// Owns: run.json in the data directory and the log file.
//
// Never: knows controllers; the Controllers function does.
//
// Read first: serve.go, then detach.go.
package up
