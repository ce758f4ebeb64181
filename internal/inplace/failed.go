package inplace

import (
	"sync"
	"time"
)

const (
	// retryFailed is after which time a call that failed is made again.
	retryFailed = 30 * time.Second
	// mostFailed is how many failed calls are remembered.
	mostFailed = 4096
)

// Failed remembers calls that failed, so that what happens to the objects meanwhile does not repeat them at once. The zero value is ready
// to use.
type Failed struct {
	mu    sync.Mutex
	calls map[string]failedCall
}

type failedCall struct {
	problem error
	until   time.Time
}

// last returns after which time a call that failed is to be made again, and why it failed; zero: it is to be made now.
func (f *Failed) last(key string, now time.Time) (left time.Duration, problem error) {
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

// note remembers that a call failed. Where too many are remembered, those whose time is over are forgotten, and else all.
func (f *Failed) note(key string, problem error, now time.Time) {
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
