package pacing

import (
	"sync"
	"time"
)

const (
	// latencyFactor is the minimum length of an interval as a multiple of the API server's latency.
	latencyFactor = 4
	// maxFactor is the maximum length of an interval as a multiple of [Debouncer].Interval.
	maxFactor = 5
)

// minKeys is the minimum number of remembered keys before old ones are removed.
const minKeys = 1024

// Debouncer separates the starts of work on the same key by an interval. Work on an object causes events for it,
// through its own writes and through the writes of its dependents. The first event starts work at once; further
// events within the interval share one start at its end. If the API server is busy, events arrive more slowly and
// the interval grows accordingly. The zero value delays nothing.
type Debouncer[K comparable] struct {
	// Interval is the time between two starts while the API server is not busy.
	Interval time.Duration

	mu      sync.Mutex
	started map[K]time.Time
	// pruneAt is the number of keys that triggers the removal of keys whose interval has passed.
	pruneAt int
}

// Delay returns how long work on a key has to wait, for the given latency of writes. Zero means that it starts now.
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

// Reset lets work on a key start at once. Call it after failed work, because a work queue treats a delay as a
// success and would reset its backoff.
func (d *Debouncer[K]) Reset(key K) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.started, key)
}
