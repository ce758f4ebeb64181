// Package jobs runs operations that take longer than a reconciliation may take, such as a copy of an etcd snapshot or
// an upload to a host. A controller starts a job for an object ([Runner.Start]), reads its state in the next
// reconciliations ([Runner.State]), and is enqueued when the job ends ([Runner.Changed]); only the LocalMachine
// controller rechecks in an interval instead. Limits on the concurrent jobs, in total and for each namespace, ensure
// that no namespace delays the others. Jobs are not retried and do not survive a restart of the process.
package jobs
