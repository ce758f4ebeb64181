package pacing

import (
	"sync"
	"time"
)

// Debouncer separates the starts of work on the same key by an interval. The driver (package reconciler) calls it
// before each reconciliation, with the object as the key. Work on an object causes events for it, through its own
// writes and through the writes of its dependents. The first event starts work at once; further events within the
// interval share one start at its end. The zero value delays nothing.
type Debouncer[K comparable] struct {
	// Interval is the time between two starts.
	Interval time.Duration

	mu      sync.Mutex
	started map[K]time.Time
}

// Delay returns how long work on a key has to wait. Zero means that it starts now.
func (d *Debouncer[K]) Delay(key K, now time.Time) time.Duration {
	if d.Interval <= 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if left := d.Interval - now.Sub(d.started[key]); left > 0 {
		return left
	}
	if d.started == nil {
		d.started = map[K]time.Time{}
	}
	d.started[key] = now
	return 0
}

// Reset lets work on a key start at once. The driver calls it after failed work, because a work queue treats a delay as
// a success and would reset its backoff. It also calls it when the object of the key no longer exists.
func (d *Debouncer[K]) Reset(key K) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.started, key)
}
