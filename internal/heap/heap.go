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
func Management() Room { return Room{bytes: 192 << 20, large: 96 << 20, percent: 200} }

// Manager is the room of controllers alone. A hundred clusters do not make their heap a large one.
func Manager() Room { return Room{bytes: 40 << 20, large: 128 << 20, percent: 150} }

// much is what a process that has much to do allocates, in bytes per second. What the collector takes depends on it, and
// not on the size of the heap: a larger one takes as much longer to collect as it is collected less often. quiet is how soon
// after a collection a process is looked at that may have ceased to have much to do.
const (
	much  = 8 << 20
	quiet = 10 * time.Second
)

// Collect keeps the heap small for as long as the process runs, and watches the collector: while much is allocated, the heap
// may grow by the room between two collections; when that is over, memory goes back to the system. A third of the processor
// time of a busy API server is the collector's otherwise. Where GOGC is set, it does nothing.
func Collect(room Room) {
	if theirs() {
		return
	}
	debug.SetGCPercent(gcWhileRunning)
	c := &collector{room: room, last: look(), percent: gcWhileRunning}
	c.quiet = time.AfterFunc(quiet, func() { c.calm(look()) })
	c.quiet.Stop()
	c.next()
}

// theirs reports whether the user has said how garbage is to be collected.
func theirs() bool { return os.Getenv("GOGC") != "" }

type collector struct {
	room Room

	mu      sync.Mutex
	last    sight
	percent int
	quiet   *time.Timer
}

// sight is what is seen of the heap at a time.
type sight struct {
	at time.Time
	// live was in use after the last collection, allocated has been since the process began; bytes.
	live, allocated int64
}

// busy reports whether much was allocated since an earlier sight.
func (s sight) busy(since sight) bool {
	return float64(s.allocated-since.allocated) >= much*s.at.Sub(since.at).Seconds()
}

// next makes the end of the next collection known.
func (c *collector) next() {
	type sentinel struct{ _ *sentinel }
	runtime.AddCleanup(&sentinel{}, func(c *collector) {
		c.collected(look())
		c.next()
	}, c)
}

// collected is called after every collection.
func (c *collector) collected(now sight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	little := !now.busy(c.last)
	c.last = now
	if little && c.percent == gcWhileRunning {
		return
	}
	c.set(percent(c.room, now.live))
	c.quiet.Reset(quiet)
}

// calm is called when there was no collection for long.
func (c *collector) calm(now sight) {
	if c.calms(now) {
		debug.FreeOSMemory()
	}
}

func (c *collector) calms(now sight) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.busy(c.last) {
		c.last = now
		c.quiet.Reset(quiet)
		return false
	}
	c.set(gcWhileRunning)
	return true
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

func look() sight {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(samples)
	return sight{at: time.Now(), live: int64(samples[0].Value.Uint64()), allocated: int64(samples[1].Value.Uint64())}
}
