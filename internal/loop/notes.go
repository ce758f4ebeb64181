package loop

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// noteMemory is how long an event is remembered after its last occurrence: as long as the recorder continues a series.
	noteMemory = 6 * time.Minute
	// maxNotes bounds how many events are remembered.
	maxNotes = 5000
)

// notes remember at which version of an object an event occurred first. The recorder makes one series of events that are the same
// up to the version of the object that they regard, and keeps the text of the first alone: so that a retry every few seconds does
// not become an Event object each time, a repeated event regards the version of the first; one with another text regards the
// version of its own. The zero value is ready to use.
type notes struct {
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

// regarding returns the object as an event with this text has to regard it.
func (n *notes) regarding(o client.Object, text string, now time.Time) client.Object {
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

// forget makes room: first of what is too old, then of all.
func (n *notes) forget(now time.Time) {
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
