package pacing

import (
	"sync"
	"time"
)

const (
	// latencyFactor is how many times the latency of the API server an interval lasts at least.
	latencyFactor = 4
	// maxFactor is how many times [Debouncer].Interval it lasts at most.
	maxFactor = 5
)

// Debouncer keeps the starts of work on the same key an interval apart. Work on an object causes events for it: its own
// writes, and those of everything that belongs to it. The first event starts work at once; those that follow within the
// interval start it together, when the interval is over. Where the API server is busy there is more time between the events,
// and the interval is as much longer. The zero value delays nothing.
type Debouncer[K comparable] struct {
	// Interval between two starts, where the API server is not busy.
	Interval time.Duration

	mu      sync.Mutex
	started map[K]time.Time
	// pruneAt is the number of keys at which those whose interval is over are forgotten.
	pruneAt int
}

// Delay returns for how long work on a key has to wait where a write takes the latency; zero: it starts now.
func (d *Debouncer[K]) Delay(key K, now time.Time, latency time.Duration) time.Duration {
	if d.Interval <= 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	interval := min(max(d.Interval, latencyFactor*latency), maxFactor*d.Interval)
	if left := interval - now.Sub(d.started[key]); left > 0 {
		return left
	}
	if d.started == nil {
		d.started, d.pruneAt = map[K]time.Time{}, minKeys
	}
	if len(d.started) >= d.pruneAt {
		for k, started := range d.started {
			if now.Sub(started) >= interval {
				delete(d.started, k)
			}
		}
		d.pruneAt = max(minKeys, 2*len(d.started))
	}
	d.started[key] = now
	return 0
}

// Reset lets work on a key start at once. It is for work that failed: a work queue that retries with backoff takes a delay for
// a success, and would restart its backoff.
func (d *Debouncer[K]) Reset(key K) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.started, key)
}
