package reporting

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Event is one Kubernetes event about the object.
type Event struct {
	// Type defaults to Normal.
	Type    string
	Reason  string
	Message string
}

// Normal returns an event of type Normal.
func Normal(reason, message string, args ...any) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: reason, Message: fmt.Sprintf(message, args...)}
}

// Warning returns an event of type Warning.
func Warning(reason, message string, args ...any) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Message: fmt.Sprintf(message, args...)}
}

// EventLog records the events of one controller. The driver (package reconciler) passes the events of a reconciliation
// to it after the status was written. The zero value records all events.
type EventLog struct {
	Controller string
	// NormalRate limits the events of type Normal. If it is nil, there is no limit.
	NormalRate *rate.Limiter
	Metrics    *Metrics

	versions eventVersions
}

// Record records an event. Normal events are dropped when the rate limit is exceeded, because an event is a write
// and the status contains the same information. If the recorder is nil, nothing is recorded.
func (l *EventLog) Record(to events.EventRecorder, o client.Object, e Event, now time.Time) {
	if to == nil {
		return
	}
	kind := cmp.Or(e.Type, corev1.EventTypeNormal)
	if kind == corev1.EventTypeNormal && l.NormalRate != nil && !l.NormalRate.Allow() {
		l.Metrics.droppedEvent(l.Controller)
		return
	}
	note := noteOf(e.Message)
	to.Eventf(l.versions.regarding(o, e.Reason+"/"+note, now), nil, kind, e.Reason, "Reconcile", "%s", note)
}

// maxNote is the maximum length of an event's note in bytes, as limited by the API.
const maxNote = 1024

// noteOf truncates a message to the length that the API accepts.
func noteOf(message string) string {
	const more = "…"
	if len(message) <= maxNote {
		return message
	}
	return strings.ToValidUTF8(message[:maxNote-len(more)], "") + more
}

// MergeEvents merges events of the same type and reason into one. The recorder treats such events as repetitions of
// the first and retains only its text.
func MergeEvents(events []Event) []Event {
	var out []Event
	for _, e := range events {
		same := func(o Event) bool { return o.Type == e.Type && o.Reason == e.Reason }
		if i := slices.IndexFunc(out, same); i >= 0 {
			out[i].Message += "; " + e.Message
		} else {
			out = append(out, e)
		}
	}
	return out
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
// at its own first occurrence. The zero value is ready to use.
type eventVersions struct {
	mu sync.Mutex
	of map[noteKey]note
}

type noteKey struct {
	uid  types.UID
	text string
}

type note struct {
	version string
	last    time.Time
}

// regarding returns the object that an event with this text refers to.
func (n *eventVersions) regarding(o client.Object, text string, now time.Time) client.Object {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := noteKey{o.GetUID(), text}
	have, known := n.of[key]
	if !known || now.Sub(have.last) > noteMemory {
		have.version = o.GetResourceVersion()
	}
	if !known {
		n.forget(now)
	}
	have.last = now
	n.of[key] = have
	if have.version == o.GetResourceVersion() {
		return o
	}
	first := o.DeepCopyObject().(client.Object)
	first.SetResourceVersion(have.version)
	return first
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
