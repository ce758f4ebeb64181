// Package up implements the up command. It locks the data directory, starts the management cluster in this process and
// the manager in a child process, which it restarts if necessary, reports the progress, and stops all parts in order
// when the command is interrupted. With --detach it starts itself again in the background and waits until the
// background process is ready. It writes run.json in the data directory and the log file. The controllers run in the
// process of the hidden up-manager command. Start with serve.go and keeper.go, then detach.go.
package up
