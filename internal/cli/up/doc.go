// Package up implements the commands up, down and status, which start, stop and show the management cluster of this
// host. The management cluster (etcd and the API server) runs in the process of "slipway up"; the controllers run in a
// child process, the hidden up-manager command, which is restarted if it crashes. The data directory connects the
// commands: up holds its lock and writes run.json and the log file, status reads them, and down stops the processes
// that hold its locks. Start with serve.go and manager_runner.go, then detach.go.
//
// The processes of "up -d" start each other, and report their progress to the process that started them:
//
//	up -d ──starts──► up --supervise ──starts, restarts──► up ──starts, restarts──► up-manager
//	  ◄────── report ──────  ◄──────────── report ───────────
//
// A report is a pipe with JSON lines: progress until the management cluster is ready, or the error of its start. Before
// the first readiness, the supervisor returns an error to the waiting command; afterwards it restarts the management
// cluster. An interrupted process stops its parts in order: controllers, hosted control planes and load balancers, API
// server, etcd.
//
// The down command stops the supervisor first, because it would restart the process, and then every hosted control
// plane and load balancer, including those whose slipway process was killed. With --delete it removes the resources of
// workload clusters through a [Delete] function, then the data directory. The status command (status.go) changes
// nothing. If the API responds, it also shows the number of simulated clusters, the missing rights of the manager, and
// the leader of several managers.
package up
