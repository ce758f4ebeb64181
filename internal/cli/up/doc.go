// Package up is the verb "up".
//
// Does: takes the data directory, starts the management cluster in this process
// and the manager in one of its own, which it keeps running, tells how far it
// is, and stops all parts in order when asked; with --detach it starts itself
// again in the background and waits until that one is ready.
//
// Owns: run.json in the data directory and the log file.
//
// Never: knows controllers; the process of the hidden verb does.
//
// Read first: serve.go, keeper.go, then detach.go.
package up
