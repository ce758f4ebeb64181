// Package pacing delays work that can wait, so that several causes share one execution of it, and none of it is attempted in
// vain.
//
//	Debouncer   the events of one object: the first starts work at once, those that follow within an interval start it once
//	Writes      the changes of one status: urgent ones are written at once, the others together when an interval is over
//	RetrySlots  the callers that were refused: each gets a time of its own to retry at
//	Latencies   how long calls to each of many servers take, by which a slow one is told from a busy machine
//	Smooth      the moving average of how long something takes, by which intervals grow where an API server is busy
//
// Does: computes delays from times that are passed in, and remembers what it needs for that: per object, bounded.
//
// Never: sleeps, reads a clock, or decides what is urgent.
//
// Read first: [Debouncer.Delay], then [Writes.Delay]. docs/decisions/0006-pacing.md has the reasons.
package pacing

import "time"

// memory is how many samples an average is made of.
const memory = 16

// Smooth returns the moving average after another sample.
func Smooth(average, sample time.Duration) time.Duration { return average + (sample-average)/memory }

// minKeys is how many keys are remembered before old ones are forgotten.
const minKeys = 1024
