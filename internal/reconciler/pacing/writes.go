package pacing

import (
	"slices"
	"sync"
	"time"
)

// WriteDebouncer debounces status writes. The driver (package reconciler) has one for each controller and consults it
// before it writes a changed status. An urgent change is written at once. Any other change is written one interval
// after it was observed, together with all changes until then. Events about a change are held until it is written. The
// zero value defers nothing.
type WriteDebouncer[K, E comparable] struct {
	// Interval is the delay of a change that is not urgent.
	Interval time.Duration

	mu sync.Mutex
	// deferred holds the objects with a deferred change or with held events.
	deferred map[K]deferred[E]
}

// deferred is the state of one object.
type deferred[E comparable] struct {
	// due is the time of the write, or zero if only events are held.
	due time.Time
	// events are released with the write.
	events []E
}

// Delay returns how long to defer a change. Zero means that the change must be written now; call Release after the
// write.
func (w *WriteDebouncer[K, E]) Delay(key K, now time.Time, urgent bool) time.Duration {
	if w.Interval <= 0 || urgent {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.deferred[key]
	if o.due.IsZero() {
		o.due = now.Add(w.Interval)
		w.remember(key, o)
	}
	return max(0, o.due.Sub(now))
}

// Hold stores events until they are released. Every reconciliation before the write reports the same events, so
// duplicates are dropped.
func (w *WriteDebouncer[K, E]) Hold(key K, events []E) {
	if len(events) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.deferred[key]
	o.events = union(o.events, events)
	w.remember(key, o)
}

// Release ends the deferral of an object, because its status is written or is up to date, or because the object no
// longer exists. It returns the held events, followed by those events in more that were not held.
func (w *WriteDebouncer[K, E]) Release(key K, more []E) []E {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.deferred[key].events
	delete(w.deferred, key)
	return union(held, more)
}

func union[E comparable](events, more []E) []E {
	for _, e := range more {
		if !slices.Contains(events, e) {
			events = append(events, e)
		}
	}
	return events
}

// remember stores the state of an object. The mutex must be held.
func (w *WriteDebouncer[K, E]) remember(key K, o deferred[E]) {
	if w.deferred == nil {
		w.deferred = map[K]deferred[E]{}
	}
	w.deferred[key] = o
}
