// Package childproc starts a child process that serves on listeners of this process. It implements both sides
// of the protocol: the parent starts the child, passes the configuration and open listeners, waits until the
// child accepts the configuration, lets it run, waits until it is ready, and stops it ([Launch]). The child
// merges several listeners into one ([Receive], [MergeListeners]). It never outlives its parent: the kernel kills it when
// the parent dies, and it exits when its standard input is closed. The content of the configuration, and
// restarts, are the caller's responsibility. The child can be a program that was compiled with an older version
// of Slipway, therefore every change of the protocol must increase [Protocol].
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
