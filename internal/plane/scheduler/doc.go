// Package scheduler runs kube-scheduler inside this process.
//
// Does: builds the scheduler from its own flags and runs it, without a serving
// port and without leader election.
//
// Never: serves the management cluster, which has no nodes to schedule to.
//
// Read first: New, Scheduler.Run.
package scheduler
