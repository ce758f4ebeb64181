package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// While a control plane starts it allocates much and keeps little: not
// collecting garbage saves a third of the processor time. Afterwards memory
// counts more than the time of a few requests, until there are many of them.
const (
	gcWhileStarting = -1 // only near the limit
	gcWhileRunning  = 50
)

// How much memory, in bytes, a start may take before garbage is collected.
const (
	StartManagementMemory = 640 << 20
	StartWorkloadMemory   = 320 << 20 // many may start at once
)

// Starting sets the garbage collector of this process up for a start that may
// take memory bytes. The function it returns, to be called when what was to be
// started runs, sets it up for running and gives memory back to the system. A
// limit that was set before, as by GOMEMLIMIT, holds in between where it is the
// smaller one, and afterwards. Where GOGC is set, neither does anything.
func Starting(memory int64) (started func()) {
	if theirs() {
		return func() {}
	}
	debug.SetGCPercent(gcWhileStarting)
	limit := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(memory, limit))
	return func() {
		debug.SetGCPercent(gcWhileRunning)
		debug.SetMemoryLimit(limit)
		go debug.FreeOSMemory()
	}
}

// Room is how much garbage may come together while there is much to do.
type Room struct {
	bytes int64
	// A heap of which more than large bytes are in use may grow by percent of them.
	large   int64
	percent int
}

// Management is the room of a management cluster, with or without controllers. What an API server allocates for a write
// does not depend on how much it stores, what a collection takes does: a large heap may grow to three times its size.
func Management() Room { return Room{bytes: 192 << 20, large: 224 << 20, percent: 200} }

// Manager is the room of controllers alone. A hundred clusters do not make their heap a large one.
func Manager() Room { return Room{bytes: 48 << 20, large: 128 << 20, percent: 150} }

// busy is how soon one collection follows another in a process that has much to
// do; quiet is for how long there is none in one that has little.
const (
	busy  = 3 * time.Second
	quiet = 10 * time.Second
)

// Collect keeps the heap small for as long as the process runs, and watches the
// collector: when collections follow each other closely, the heap may grow by
// the room between two of them; when that is over, memory goes back to the
// system. A third of the processor time of a busy API server is the collector's
// otherwise. Where GOGC is set, it does nothing.
func Collect(room Room) {
	if theirs() {
		return
	}
	debug.SetGCPercent(gcWhileRunning)
	c := &collector{room: room, last: time.Now(), percent: gcWhileRunning}
	c.quiet = time.AfterFunc(quiet, c.rest)
	c.quiet.Stop()
	c.next()
}

// theirs reports whether the user has said how garbage is to be collected.
func theirs() bool { return os.Getenv("GOGC") != "" }

type collector struct {
	room Room

	mu      sync.Mutex
	last    time.Time // of the last collection
	percent int
	quiet   *time.Timer
}

// next makes the end of the next collection known.
func (c *collector) next() {
	type sentinel struct{ _ *sentinel }
	runtime.AddCleanup(&sentinel{}, func(c *collector) {
		c.collected(time.Now(), live())
		c.next()
	}, c)
}

// collected is called after every collection.
func (c *collector) collected(now time.Time, live int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := now.Sub(c.last)
	c.last = now
	if since > busy && c.percent == gcWhileRunning {
		return
	}
	c.set(percent(c.room, live))
	c.quiet.Reset(quiet)
}

// rest is called when there was no collection for long.
func (c *collector) rest() {
	c.mu.Lock()
	c.set(gcWhileRunning)
	c.mu.Unlock()
	debug.FreeOSMemory()
}

func (c *collector) set(percent int) {
	if percent != c.percent {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}

// percent lets a heap grow by its room: to collect takes the longer the larger it is.
func percent(room Room, live int64) int {
	if live >= room.large {
		return room.percent
	}
	return max(gcWhileRunning, int(100*room.bytes/max(live, 1)))
}

// live is how much of the heap was in use after the last collection.
func live() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
