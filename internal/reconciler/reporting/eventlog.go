package reporting

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Event is one Kubernetes event about the object. Controllers use it under its name in package reconciler.
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
	warnings warningLimits
}

// Record records an event. Repetitions of an event continue its series. Normal events are dropped when the rate limit
// of the manager is exceeded, and new Warnings when the limit of the object is, because an event is a write and the
// status contains the same information. If the recorder is nil, nothing is recorded. The driver calls it for each event
// of a report.
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
	text := e.Reason + "/" + Normalized(note)
	regarding, repeated := l.versions.regarding(o, text, now)
	if kind == corev1.EventTypeWarning && !repeated && !l.warnings.allow(o.GetUID(), now) {
		l.versions.drop(o, text) // it was not recorded, so it has no repetitions
		l.Metrics.droppedEvent(l.Controller)
		return
	}
	to.Eventf(regarding, nil, kind, e.Reason, "Reconcile", "%s", note)
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
// the first and retains only its text. The driver calls it before it records the events of a reconciliation.
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
