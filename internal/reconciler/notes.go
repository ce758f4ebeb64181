package reconciler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
