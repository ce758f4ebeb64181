// Package pacing delays work that can wait, so that several events share one execution and rejected calls are not
// retried too early. All delays are computed from times that the caller passes in, with bounded memory per object. The
// package never sleeps, reads a clock, or decides which changes are urgent. To change it, start with
// [Debouncer.Delay], then read [Writes.Delay]. The reasons are in docs/decisions/0006-pacing.md.
//
// Each type delays one kind of work, or measures when to delay it:
//
//	Debouncer   events of one object: the first starts work at once, the rest of an interval share one start
//	Writes      changes of one status: urgent ones are written at once, the others together after an interval
//	RetrySlots  callers that a rate limit rejected: each gets its own time to retry
//	Latencies   latencies of calls to many servers, to distinguish a slow server from a busy machine
package pacing
