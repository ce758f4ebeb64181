// Package pacing delays work that can wait, so that several events share one execution and rejected calls are not
// retried too early.
//
//	Debouncer   events of one object: the first starts work at once, the rest of an interval share one start
//	Writes      changes of one status: urgent ones are written at once, the others together after an interval
//	RetrySlots  callers that a rate limit rejected: each gets its own time to retry
//	Latencies   latencies of calls to many servers, to distinguish a slow server from a busy machine
//	Smooth      moving average of a duration, with which intervals grow while the API server is busy
//
// All delays are computed from times that the caller passes in, with bounded memory per object. The package never
// sleeps, reads a clock, or decides which changes are urgent. Start with [Debouncer.Delay], then read
// [Writes.Delay]. The reasons are in docs/decisions/0006-pacing.md.
package pacing

import "time"

// memory is the number of samples in a moving average.
const memory = 16

// smooth returns the moving average after another sample.
func smooth(average, sample time.Duration) time.Duration { return average + (sample-average)/memory }

// minKeys is the minimum number of remembered keys before old ones are removed.
const minKeys = 1024
