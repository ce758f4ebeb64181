// Package heap configures the garbage collector of this process for its current phase, and the order in which
// the kernel's OOM killer selects processes (oomscore.go). [TuneForStartup] lets a control plane start without
// garbage collection, and [Collect] limits the heap to a small size afterwards and lets it grow while the
// process is busy. At rest, unused heap memory and pages of the program file are returned to the system. The
// package changes the GC percentage and the memory limit of the whole process; GOGC or GOMEMLIMIT in the
// environment take precedence. It is compiled into programs of several Kubernetes versions
// (internal/controlplane/program) and imports nothing of Slipway.
package heap
