package hook

import (
	"sync"
	"time"
)

// breakerConfig configures a breaker. The zero value of a field is its default.
type breakerConfig struct {
	// Failures is the number of consecutive failures that opens the circuit. Default 5.
	Failures int
	// First and Last are the delays before the first and before later probes. Default 1 s and 1 min.
	First, Last time.Duration
	// Random returns a number in [0,1); nil for no jitter.
	Random func() float64
}

// jitter is the largest fraction of a delay that is added or subtracted at random.
const jitter = 0.2

func (c breakerConfig) withDefaults() breakerConfig {
	if c.Failures == 0 {
		c.Failures = 5
	}
	if c.First == 0 {
		c.First = time.Second
	}
	if c.Last == 0 {
		c.Last = time.Minute
	}
	return c
}

// Delay returns the delay after the n-th consecutive failure, n from 1.
func (c breakerConfig) Delay(n int) time.Duration {
	c = c.withDefaults()
	pause := c.First
	for range n - 1 {
		if pause *= 2; pause >= c.Last {
			pause = c.Last
			break
		}
	}
	if c.Random == nil {
		return pause
	}
	return time.Duration(float64(pause) * (1 + jitter*(2*c.Random()-1)))
}

// BreakerState is a snapshot of a breaker.
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

// breaker is a circuit breaker. It decides whether a call may be made now, based on the outcome of previous calls. Its
// state is in memory only, and the caller passes the time. It is safe for concurrent use.
type breaker struct {
	cfg breakerConfig

	mu     sync.Mutex
	failed int // consecutive failures, while closed
	opened int // consecutive times without a success in between
	probe  bool
	state  BreakerState
}

// newBreaker returns a closed breaker.
func newBreaker(cfg breakerConfig) *breaker { return &breaker{cfg: cfg.withDefaults()} }

// breakerPermit allows one call. The caller must call exactly one of its methods when the call is done.
type breakerPermit struct {
	b     *breaker
	probe bool
}

// Acquire returns a permit if the circuit is closed. While it is open, it permits one probe at a time, once the delay has
// passed.
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
	switch {
	case p.probe:
		p.b.probe = false
	case p.b.state.Open:
		return false
	default:
		if p.b.failed++; p.b.failed < p.b.cfg.Failures {
			return false
		}
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

// Reset closes the circuit because the server responded to something other than a permitted call. It reports whether
// that is a change.
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
	b.failed = 0
	b.state = BreakerState{Open: true, Since: since, RetryAt: now.Add(b.cfg.Delay(b.opened)), Cause: f}
}

func (b *breaker) close() bool {
	was := b.state.Open
	b.failed, b.opened, b.probe, b.state = 0, 0, false, BreakerState{}
	return was
}
