// Package childproc starts, adopts and stops the processes of Slipway, and manages their logs. [Start] starts a child
// process that either never outlives this process or is detached from it, [Service] one that is also confined and logs
// to a file, and [Restarts] computes the backoff of restarts. [Terminate] stops a process that an earlier process
// started: a lock that the process holds shows whether it is running, so that a reused process ID is never mistaken for
// it. A log file includes panics of the Go runtime, is rotated when it is too large, and reserves disk space for the
// last messages of a process ([OpenLog], [WatchLog], [WriteLogLines]). Callers decide when a process is started,
// restarted or stopped. `slipway up`, `slipway logs` and packages controlplane, managerproc, supervisor,
// local/loadbalancer and extensiontools use it.
//
// The package also implements both sides of the protocol with the program of another Kubernetes version: the parent
// starts the program, passes the configuration and open listeners, waits until the child accepts the configuration,
// lets it run, waits until it is ready, and stops it ([Launch]). The child merges several listeners into one
// ([Receive]) and exits when its standard input is closed. Only this file and receive.go are compiled into that
// program, with the version of Slipway that added it, therefore every change of the protocol must increase [Protocol].
//
// The messages of the protocol:
//
//	parent                                   child
//	start, with the listeners as files  ─►
//	request (stdin)                     ─►   parses the configuration
//	                                    ◄─   configured (file 3)
//	run (stdin)                         ─►   serves
//	                                    ◄─   ready (file 3)
//	SIGTERM, or the end of stdin        ─►   exits
package childproc
