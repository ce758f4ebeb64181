package pacing

import (
	"math"
	"slices"
	"sync"
	"time"
)

// Urgency determines how long a change may be deferred.
type Urgency int

const (
	// Deferrable changes are only informational.
	Deferrable Urgency = iota
	// Initial is the first change of a new object. Many more changes follow.
	Initial
	// DeletionStarted is the first change of an object that is being deleted. Most such objects are gone before the change
	// is written. The others may be blocked by another party; their change is written after the same time even on a
	// busy machine.
	DeletionStarted
	// InProgress is the change of a reconciliation that acted, for example created an object, so that more changes
	// follow.
	InProgress
	// InitialUserAction is an Initial change that requests an action of a user, who may be watching.
	InitialUserAction
	// Explanatory changes correct the explanation why something is not ready.
	Explanatory
	// Urgent changes are those that something waits for.
	Urgent
)

const (
	// maxBackoff limits the time between two writes of an object, as a multiple of the interval.
	maxBackoff = 4
	// writeFactor is the minimum length of the interval as a multiple of the duration of a write. maxStretch limits
	// this growth as a multiple of [WriteDebouncer].Interval.
	writeFactor, maxStretch = 20, 5
	// halfLife is the time without writes after which the measured latency is halved, because a busy API server may
	// have recovered in the meantime.
	halfLife = time.Second
)

// WriteDebouncer debounces status writes. While an object is created, its status changes with every step of every part, and
// most of these changes are only informational. Such a change is written one interval after the last write of the
// object's status, together with later changes. An urgent change is written at once and includes all deferred
// changes. Events about a change are held until it is written. The zero value defers nothing.
type WriteDebouncer[K, E comparable] struct {
	// Interval is the time between two non-urgent writes of an object.
	Interval time.Duration

	mu sync.Mutex
	// average is the average duration of writes at the time ended, the end of the last write.
	average time.Duration
	ended   time.Time
	objects map[K]written[E]
	// pruneAt is the number of objects that triggers the removal of objects that were not used for a long time.
	pruneAt int
}

// written is the state of one object.
type written[E comparable] struct {
	// since is the time of the last write, or of the first deferral of an initial or underway change.
	since time.Time
	// initial is set while an initial or underway change is deferred.
	initial bool
	// outdated is the time since which the written status contains a wrong explanation or lacks a request to a
	// user, or zero.
	outdated time.Time
	// interval is the interval of this object. It doubles while changes keep coming, so that a busy machine, on
	// which everything takes longer, does not cause more writes.
	interval time.Duration
	// events are released with the next write.
	events []E
	// seen is the time of the last use.
	seen time.Time
}

// Delay returns how long to defer a change. Zero means that the change must be written now, and counts as written.
// A new object is deferred from its first change on; so is an underway change after a long time without changes.
func (w *WriteDebouncer[K, E]) Delay(key K, now time.Time, urgency Urgency) time.Duration {
	if w.Interval <= 0 {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	o, interval := w.objects[key], w.stretched(now)
	switch {
	case o.initial:
	case urgency == Initial, urgency == InitialUserAction, urgency == DeletionStarted:
		o.since, o.initial, o.interval = now, true, 2*interval
	case urgency == InProgress && now.Sub(o.since) >= 2*max(o.interval, interval): // after a long time without changes
		o.since, o.initial, o.interval = now, true, interval
	}
	o.interval = max(o.interval, interval)
	switch {
	case urgency != Explanatory && urgency != InitialUserAction:
		o.outdated = time.Time{}
	case o.outdated.IsZero():
		o.outdated = now
	}
	passed, left := now.Sub(o.since), o.since.Add(o.interval).Sub(now)
	if urgency == DeletionStarted {
		left = min(left, o.since.Add(2*w.Interval).Sub(now))
	}
	if !o.outdated.IsZero() {
		left = min(left, o.outdated.Add(interval/2).Sub(now))
	}
	switch {
	case urgency == Urgent:
	case left > 0:
		w.remember(key, o, now)
		return left
	case passed < 2*o.interval:
		o.interval = min(2*o.interval, maxBackoff*interval)
	default: // a long time without changes
		o.interval = interval
	}
	o.since, o.initial, o.outdated = now, false, time.Time{}
	w.remember(key, o, now)
	return 0
}

// Wrote adds the duration of a completed write to the latency.
func (w *WriteDebouncer[K, E]) Wrote(took time.Duration, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.average, w.ended = smooth(w.latency(now), took), now
}

// Latency returns the average duration of a write.
func (w *WriteDebouncer[K, E]) Latency(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latency(now)
}

// latency returns the average duration of a write. The mutex must be held.
func (w *WriteDebouncer[K, E]) latency(now time.Time) time.Duration {
	halvings := max(0, now.Sub(w.ended).Seconds()/halfLife.Seconds())
	return time.Duration(float64(w.average) * math.Exp2(-halvings))
}

// stretched returns the interval for the current latency. The mutex must be held.
func (w *WriteDebouncer[K, E]) stretched(now time.Time) time.Duration {
	return min(max(w.Interval, writeFactor*w.latency(now)), maxStretch*w.Interval)
}

// Hold stores events until they are released. Every reconciliation before the write reports the same events, so
// duplicates are dropped.
func (w *WriteDebouncer[K, E]) Hold(key K, events []E, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(events) == 0 {
		return
	}
	o := w.objects[key]
	o.events = union(o.events, events)
	w.remember(key, o, now)
}

// Release returns and removes the stored events, followed by those events in more that were not stored.
func (w *WriteDebouncer[K, E]) Release(key K, more []E) []E {
	w.mu.Lock()
	defer w.mu.Unlock()
	o, ok := w.objects[key]
	if !ok || len(o.events) == 0 {
		return more
	}
	kept := o.events
	o.events = nil
	w.objects[key] = o
	return union(kept, more)
}

func union[E comparable](events, more []E) []E {
	for _, e := range more {
		if !slices.Contains(events, e) {
			events = append(events, e)
		}
	}
	return events
}

// remember stores the state of an object. It removes objects that were not used for twice the maximum delay,
// because they were deleted. The mutex must be held.
func (w *WriteDebouncer[K, E]) remember(key K, o written[E], now time.Time) {
	if w.objects == nil {
		w.objects, w.pruneAt = map[K]written[E]{}, minKeys
	}
	if len(w.objects) >= w.pruneAt {
		for k, v := range w.objects {
			if now.Sub(v.seen) > 2*max(v.interval, maxBackoff*w.Interval) {
				delete(w.objects, k)
			}
		}
		w.pruneAt = max(minKeys, 2*len(w.objects))
	}
	o.seen = now
	w.objects[key] = o
}
