// Package supervisor supervises the control planes of workload clusters, each of which is a separate process.
// A [Supervisor] starts a control plane detached from this process, so that it outlives it, and adopts
// processes that an earlier process of Slipway started. It restarts a control plane with backoff when it exits
// and when its configuration changes, checks its health, stops it, and deletes its data. A lock that the
// process holds shows whether it is running, so that a reused process ID is never mistaken for it. Another
// lock prevents two supervisors from acting on the same directory. A control plane that is transferred to
// another management cluster is released (package hosttransfer). To change when a process is started or
// stopped, start at next in step.go, which decides, and at loop.go, which observes and acts.
//
// In the directory of each control plane, the package writes supervision.json (restarts, last exit) and log/.
// Remove deletes the whole directory. Package manager creates the [Supervisor], and package hosted/process calls it for
// HostedControlPlanes.
package supervisor
