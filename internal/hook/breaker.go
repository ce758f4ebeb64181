package hook

import (
	"sync"
	"time"

	"github.com/slipwayhq/slipway/internal/pause"
)

// failuresToOpen is the number of consecutive failures that opens a circuit. This number and the delays are our choice;
// the package documentation and docs/decisions/0007 contain them.
const failuresToOpen = 5

// backoff returns the delay after the n-th consecutive failure, n from 1: 1 s, doubled each time, at most 1 min.
func backoff(n int) time.Duration { return pause.Backoff(n, time.Second, time.Minute) }

// BreakerState is a snapshot of a breaker. The ExtensionConfig controller reports it in conditions.
type BreakerState struct {
	Open bool
	// Since is when the circuit opened, RetryAt when the next probe may be sent. Both are zero while it is closed.
	Since, RetryAt time.Time
	// Cause is the failure that opened the circuit.
	Cause BreakerFailure
}

// BreakerFailure is the reason why a call failed.
type BreakerFailure struct {
	// Reason is CamelCase; Message is a text for users that is the same for every failure of this kind.
	Reason, Message string
}

// breaker is a circuit breaker: one for each Runtime Extension and one for each of its handlers, so that controllers do
// not wait for an extension that fails. It decides whether a call may be made now, based on the outcome of previous
// calls. Its state is in memory only, and the caller passes the time. It is safe for concurrent use. [Extensions]
// requests its permits and reports the outcomes (circuit.go).
type breaker struct {
	// jitter varies the delay before a probe.
	jitter func(time.Duration) time.Duration

	mu     sync.Mutex
	failed int // consecutive failures, while closed
	opened int // consecutive times without a success in between
	probe  bool
	state  BreakerState
}

// breakerPermit allows one call. The caller must call exactly one of its methods when the call is done. reportOutcome
// does so after each call.
type breakerPermit struct {
	b     *breaker
	probe bool
}

// Acquire returns a permit if the circuit is closed. While it is open, it permits one probe at a time, once the delay
// has passed.
func (b *breaker) Acquire(now time.Time) (breakerPermit, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.state.Open {
		return breakerPermit{b: b}, true
	}
	if b.probe || now.Before(b.state.RetryAt) {
		return breakerPermit{}, false
	}
	b.probe = true
	return breakerPermit{b: b, probe: true}, true
}

// Succeeded closes the circuit, because the server responded. It reports whether that is a change.
func (p breakerPermit) Succeeded() bool {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if p.b.state.Open && !p.probe {
		p.b.failed = 0
		return false // calls that started before the circuit opened do not count
	}
	return p.b.close()
}

// Failed counts a failure, and reports whether it opened the circuit or extended the delay.
func (p breakerPermit) Failed(now time.Time, f BreakerFailure) bool {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if p.b.state.Open && !p.probe {
		return false
	}
	if p.b.failed++; p.b.failed < failuresToOpen && !p.probe {
		return false
	}
	p.b.open(now, f)
	return true
}

// Abandoned returns the permit without counting a success or failure, for example because the caller was canceled.
func (p breakerPermit) Abandoned() {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if p.probe {
		p.b.probe = false
	}
}

// Reset closes the circuit because the server responded to something other than a permitted call, which is a discovery.
// It reports whether that is a change.
func (b *breaker) Reset() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.close()
}

// State returns the current state.
func (b *breaker) State() BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

func (b *breaker) open(now time.Time, f BreakerFailure) {
	since := now
	if b.state.Open {
		since = b.state.Since
	}
	b.opened++
	b.failed, b.probe = 0, false
	b.state = BreakerState{Open: true, Since: since, RetryAt: now.Add(b.jitter(backoff(b.opened))), Cause: f}
}

func (b *breaker) close() bool {
	was := b.state.Open
	b.failed, b.opened, b.probe, b.state = 0, 0, false, BreakerState{}
	return was
}
