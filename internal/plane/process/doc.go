// Package process keeps the control planes of workload clusters running, each
// as a process of its own.
//
// Does: starts a control plane detached from this process, so that it outlives
// it; takes over one that an earlier slipway started; starts it again with
// growing pauses when it dies or when its configuration changed; asks its
// health; stops it, and removes its data. A lock tells whether it is alive; the
// process holds, so that a process ID that was given to another program is
// never mistaken. Another lock keeps two programs from acting on one folder, and one
// that was handed over to another slipway is let go (package custody).
//
// Owns: the processes, and below the folder of each FOLDER/supervision.json
// (restarts, last exit), FOLDER/log and, on Remove, the whole folder.
//
// Never: makes certificates or talks to the API beyond its health paths.
//
// Read first: Supervisor, then next in step.go, which decides.
package process
