package reporting

import (
	"regexp"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// varying matches the parts of a message that differ between repetitions of one event: times, durations, the local port
// of a connection, UUIDs, and numbers of attempts.
var varying = regexp.MustCompile(`(^|[\s("'=,])(?:` +
	`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?` +
	`|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}` +
	`|(?:\d+(?:\.\d+)?(?:ns|µs|ms|s|m|h|d))+` +
	`|(?:attempt|try|retry) \d+` +
	`|\d+ (?:seconds?|minutes?|hours?|attempts?|times))` +
	`($|[\s).,;:"'])`)

// localPort matches the local port of a connection, which the kernel chooses.
var localPort = regexp.MustCompile(`:\d{1,5}->`)

// Normalized returns a message without the parts that differ between repetitions: times, durations, local ports, UUIDs
// and numbers of attempts. They are replaced twice, because a match includes the characters around a part, so that the
// first replacement omits every second one of neighbouring parts. The manager's store of plans also compares errors
// with it.
func Normalized(message string) string {
	message = localPort.ReplaceAllString(message, ":#->")
	for range 2 {
		message = varying.ReplaceAllString(message, "$1#$2")
	}
	return message
}

const (
	// noteMemory is how long an event is remembered after its last occurrence. The event recorder continues a
	// series for the same time.
	noteMemory = 6 * time.Minute
	// maxNotes limits the number of remembered events.
	maxNotes = 5000
)

// eventVersions remembers the resource version of an object at the first occurrence of each event. The recorder merges
// events that are equal up to the resource version of the regarding object into one series and retains only the
// text of the first. A repeated event therefore refers to the version of its first occurrence, so that a retry
// every few seconds does not create an Event object each time. An event with a different text refers to the version
// at its own first occurrence. The zero value is ready to use. [EventLog.Record] calls its method regarding for each
// event.
type eventVersions struct {
	mu sync.Mutex
	of map[noteKey]note
}

type noteKey struct {
	uid  types.UID
	text string
}

// note has the version of the object at the first occurrence of an event, and the time of the last occurrence.
type note struct {
	version string
	last    time.Time
}

// regarding returns the object that an event with this text refers to, and whether the event continues a series.
func (n *eventVersions) regarding(o client.Object, text string, now time.Time) (regarding client.Object, repeated bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := noteKey{o.GetUID(), text}
	have, known := n.of[key]
	repeated = known && now.Sub(have.last) <= noteMemory
	if !repeated {
		have.version = o.GetResourceVersion()
	}
	if !known {
		n.forget(now)
	}
	have.last = now
	n.of[key] = have
	if have.version == o.GetResourceVersion() {
		return o, repeated
	}
	first := o.DeepCopyObject().(client.Object)
	first.SetResourceVersion(have.version)
	return first, repeated
}

// drop forgets an event. [EventLog.Record] calls it for an event that it did not record, so that the next one starts a
// series.
func (n *eventVersions) drop(o client.Object, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.of, noteKey{o.GetUID(), text})
}

// forget frees space: it drops outdated events first, then all.
func (n *eventVersions) forget(now time.Time) {
	if n.of == nil {
		n.of = map[noteKey]note{}
	}
	if len(n.of) < maxNotes {
		return
	}
	for key, have := range n.of {
		if now.Sub(have.last) > noteMemory {
			delete(n.of, key)
		}
	}
	if len(n.of) >= maxNotes {
		clear(n.of)
	}
}

const (
	// warningBurst is the number of different Warnings that an object can have at once, and warningInterval the time after
	// which it can have another one. Repetitions do not count.
	warningBurst    = 20
	warningInterval = time.Minute
)

// warningLimits limits the Warnings of each object, because a message that differs with every reconciliation would
// create an Event object each time. The zero value is ready to use. [EventLog.Record] checks it for each Warning.
type warningLimits struct {
	mu sync.Mutex
	of map[types.UID]*rate.Limiter
}

// allow reports whether the object can have another Warning. [EventLog.Record] checks it before each Warning that
// starts a series.
func (w *warningLimits) allow(uid types.UID, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.of[uid]
	if l == nil {
		if w.of == nil || len(w.of) >= maxNotes { // a limit that is forgotten allows more
			w.of = map[types.UID]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Every(warningInterval), warningBurst)
		w.of[uid] = l
	}
	return l.AllowN(now, 1)
}
