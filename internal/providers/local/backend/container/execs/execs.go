package execs

import (
	"sync"
	"time"
)

// forgotten is after how long a command of this program is forgotten whose end Docker has not told of: events are lost when the
// connection is.
const forgotten = 10 * time.Minute

// Set are commands, by Docker's names for them. The zero value is ready to use.
type Set struct {
	mu    sync.Mutex
	began map[string]time.Time
	swept time.Time
}

// Begin notes a command that this program is about to run.
func (e *Set) Begin(id string, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.began == nil {
		e.began = map[string]time.Time{}
	}
	if now.Sub(e.swept) > forgotten {
		e.swept = now
		for other, at := range e.began {
			if now.Sub(at) > forgotten {
				delete(e.began, other)
			}
		}
	}
	e.began[id] = now
}

// End reports whether a command that has ended was one of these.
func (e *Set) End(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, own := e.began[id]
	delete(e.began, id)
	return own
}
