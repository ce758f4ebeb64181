package pacing

import (
	"math"
	"slices"
	"sync"
	"time"
)

// Urgency says how long a change may be deferred.
type Urgency int

const (
	// Deferrable changes only report.
	Deferrable Urgency = iota
	// Initial is the first change of something that has just begun: many will follow.
	Initial
	// Ending is the first change of something that is being deleted. Most of it is gone before the change is written; what is not may be held by
	// another party, and is reported after the same time on a busy machine.
	Ending
	// Underway is a change with which something was done that leads to more of them, such as an object that was created.
	Underway
	// Demanding is a first change as Initial is, which says that a person has to do something: one may be watching.
	Demanding
	// Explanatory changes correct what is written of why something is not ready.
	Explanatory
	// Urgent changes are waited for by something.
	Urgent
)

const (
	// maxBackoff is how many times the interval lies between two writes of an object at most.
	maxBackoff = 4
	// writeFactor is how many times as long as a write takes the interval is at least, and maxStretch how many times
	// [Writes].Interval it becomes for that reason at most.
	writeFactor, maxStretch = 20, 5
	// halfLife is after which time without a write the latency counts for half of what it was: an API server that was busy
	// then need not be busy now.
	halfLife = time.Second
)

// Writes debounces the writes of the status of objects. While something is created, its status changes with every step of
// every part of it, and most of these changes only report. Such a change is written when the last write of the object's
// status is an interval ago, together with what changed since; an urgent change is written at once and takes everything else
// along. Events that tell about a change are kept until it is written. The zero value defers nothing.
type Writes[K, E comparable] struct {
	// Interval between two writes of an object neither of which is urgent.
	Interval time.Duration

	mu sync.Mutex
	// average is how long writes took when the last of them ended.
	average time.Duration
	ended   time.Time
	objects map[K]written[E]
	// pruneAt is the number of objects at which those that were not seen for long are forgotten.
	pruneAt int
}

// written is what is remembered of one object.
type written[E comparable] struct {
	// since is the time of the last write, or of the first deferral of what has just begun or is underway.
	since time.Time
	// initial: nothing was written yet of what has just begun, or is underway.
	initial bool
	// outdated is since when what is written explains something wrongly, or lacks what a person has to do; zero: it does not.
	outdated time.Time
	// interval of this object. It doubles while changes keep coming, so that a busy machine, on which everything takes
	// longer, does not write more.
	interval time.Duration
	// events to release with the write.
	events []E
	// seen is when anything was remembered last.
	seen time.Time
}

// Delay returns for how long to defer a change; zero: it is to be written now, and counts as written. What has just begun is
// deferred from its first change on, and so is what is underway after nothing had changed for long.
func (w *Writes[K, E]) Delay(key K, now time.Time, urgency Urgency) time.Duration {
	if w.Interval <= 0 {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	o, interval := w.objects[key], w.stretched(now)
	switch {
	case o.initial:
	case urgency == Initial, urgency == Demanding, urgency == Ending:
		o.since, o.initial, o.interval = now, true, 2*interval
	case urgency == Underway && now.Sub(o.since) >= 2*max(o.interval, interval): // after a long time without any
		o.since, o.initial, o.interval = now, true, interval
	}
	o.interval = max(o.interval, interval)
	switch {
	case urgency != Explanatory && urgency != Demanding:
		o.outdated = time.Time{}
	case o.outdated.IsZero():
		o.outdated = now
	}
	passed, left := now.Sub(o.since), o.since.Add(o.interval).Sub(now)
	if urgency == Ending {
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
	default: // nothing had changed for long
		o.interval = interval
	}
	o.since, o.initial, o.outdated = now, false, time.Time{}
	w.remember(key, o, now)
	return 0
}

// Wrote adds the duration of a write that has just ended to the latency.
func (w *Writes[K, E]) Wrote(took time.Duration, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.average, w.ended = Smooth(w.latency(now), took), now
}

// Latency returns how long a write takes.
func (w *Writes[K, E]) Latency(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latency(now)
}

// latency is how long a write takes. The mutex must be held.
func (w *Writes[K, E]) latency(now time.Time) time.Duration {
	halvings := max(0, now.Sub(w.ended).Seconds()/halfLife.Seconds())
	return time.Duration(float64(w.average) * math.Exp2(-halvings))
}

// stretched is the interval where writes take as long as they do. The mutex must be held.
func (w *Writes[K, E]) stretched(now time.Time) time.Duration {
	return min(max(w.Interval, writeFactor*w.latency(now)), maxStretch*w.Interval)
}

// Keep remembers events until they are released. Every reconciliation until the write reports the same ones.
func (w *Writes[K, E]) Keep(key K, events []E, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(events) == 0 {
		return
	}
	o := w.objects[key]
	o.events = union(o.events, events)
	w.remember(key, o, now)
}

// Release returns the events that were kept, followed by those of more that are not among them, and forgets them.
func (w *Writes[K, E]) Release(key K, more []E) []E {
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

// remember remembers an object, and forgets those that were not seen for twice as long as anything is deferred: these were
// deleted. The mutex must be held.
func (w *Writes[K, E]) remember(key K, o written[E], now time.Time) {
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
