// Package scheduler runs kube-scheduler in this process, built from its own flags, without a serving port and
// without leader election. A management cluster without nodes does not need it. Start at New and
// Scheduler.Run.
package components
