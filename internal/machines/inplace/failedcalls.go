package inplace

import (
	"sync"
	"time"
)

const (
	// retryFailed is the delay before a failed call is repeated.
	retryFailed = 30 * time.Second
	// mostFailed limits the number of remembered calls.
	mostFailed = 4096
)

// FailedCalls remembers failed calls of extensions, so that changes of the objects do not repeat them at once. Each
// controller that has a [Caller] creates one; the records are lost when the manager restarts. The zero value is ready
// to use.
type FailedCalls struct {
	mu    sync.Mutex
	calls map[string]failedCall
}

// failedCall is the error of a call, and the end of the delay before it may be repeated.
type failedCall struct {
	problem error
	until   time.Time
}

// last returns the remaining delay before a failed call may be repeated, and its error. Zero means that the call
// may be made now.
func (f *FailedCalls) last(key string, now time.Time) (left time.Duration, problem error) {
	if f == nil {
		return 0, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	call := f.calls[key]
	if left = call.until.Sub(now); left <= 0 {
		delete(f.calls, key)
		return 0, nil
	}
	return left, call.problem
}

// note records a failed call. If too many are recorded, it removes expired records, or all of them if none are
// expired.
func (f *FailedCalls) note(key string, problem error, now time.Time) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.calls) >= mostFailed {
		for key, call := range f.calls {
			if !call.until.After(now) {
				delete(f.calls, key)
			}
		}
	}
	if f.calls == nil || len(f.calls) >= mostFailed {
		f.calls = map[string]failedCall{}
	}
	f.calls[key] = failedCall{problem, now.Add(retryFailed)}
}
