package container

import (
	"sync"
	"time"
)

// execRecordTTL is the time after which a command is removed from the record without an end event. Events are lost when the
// connection to Docker is.
const execRecordTTL = 10 * time.Minute

// ownExecs records which commands in containers this program has started itself, by their Docker exec IDs, so that
// Docker's events about their end can be ignored. A command is removed from the record at its end event, or after a
// timeout. The zero value is ready to use.
type ownExecs struct {
	mu    sync.Mutex
	began map[string]time.Time
	swept time.Time
}

// Begin records a command that this program is about to run.
func (e *ownExecs) Begin(id string, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.began == nil {
		e.began = map[string]time.Time{}
	}
	if now.Sub(e.swept) > execRecordTTL {
		e.swept = now
		for other, at := range e.began {
			if now.Sub(at) > execRecordTTL {
				delete(e.began, other)
			}
		}
	}
	e.began[id] = now
}

// End reports whether the ended command was started by this program, and removes it from the record.
func (e *ownExecs) End(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, own := e.began[id]
	delete(e.began, id)
	return own
}
