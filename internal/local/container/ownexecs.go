package container

import (
	"sync"
	"time"
)

// execRecordTTL is the time after which a command is removed from the record without an end event. Events are lost when
// the connection to Docker is.
const execRecordTTL = 10 * time.Minute

// ownExecs records which commands in containers this program has started itself, by their Docker exec IDs, so that
// [Engine.Watch] can ignore Docker's events about their end. A command is removed from the record at its end event, or
// after a timeout. The zero value is ready to use.
type ownExecs struct{ timers sync.Map }

// Begin records a command that this program is about to run. Engine.stream calls it before each command.
func (e *ownExecs) Begin(id string) {
	e.timers.Store(id, time.AfterFunc(execRecordTTL, func() { e.timers.Delete(id) }))
}

// End reports whether the ended command was started by this program, and removes it from the record. [Engine.Watch]
// calls it, so that it does not report the end of own commands as an event.
func (e *ownExecs) End(id string) bool {
	timer, own := e.timers.LoadAndDelete(id)
	if own {
		timer.(*time.Timer).Stop()
	}
	return own
}
