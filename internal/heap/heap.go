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
	gcSparing       = 25
)

// How much memory, in bytes, a start may take before garbage is collected.
const (
	StartManagementMemory = 640 << 20
	StartWorkloadMemory   = 208 << 20 // many may start at once, and what is scattered over much memory keeps it
	PlanMemory            = 1 << 30   // of a command that ends when it has its answer
)

// Starting sets the garbage collector of this process up for a start that may
// take memory bytes. The function it returns, to be called when what was to be
// started runs, sets it up for running and gives memory back to the system. A
// limit that was set before, as by GOMEMLIMIT, holds in between where it is the
// smaller one, and afterwards. Where GOGC is set, neither does anything.
func Starting(memory int64) (started func()) {
	if userConfigured() {
		return func() {}
	}
	debug.SetGCPercent(gcWhileStarting)
	limit := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(memory, limit))
	return func() {
		debug.SetGCPercent(gcWhileRunning)
		debug.SetMemoryLimit(limit)
		go giveBack()
	}
}

// Limit sets the memory, in bytes, near which garbage is collected without regard to the processor time that it takes. It is no bound: a process
// that needs more gets it. Where GOMEMLIMIT is set, it does nothing.
func Limit(memory int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory)
	}
}

// Spare keeps the heap small for as long as the process runs, which takes more processor time. It is for commands that hold much. Where
// GOGC is set, it does nothing.
func Spare() {
	if !userConfigured() {
		debug.SetGCPercent(gcSparing)
	}
}

// Headroom is how much garbage may accumulate: at rest percent of the heap, and while the process is busy some more.
type Headroom struct {
	rest  int
	bytes int64
	// A heap of which more than large bytes are in use may grow by percent of them.
	large   int64
	percent int
}

// Management is the headroom of a management cluster, with or without controllers. What an API server allocates for a write
// does not depend on how much it stores, but the cost of a collection does: a large heap may grow to three times its size.
func Management() Headroom {
	return Headroom{rest: gcWhileRunning, bytes: 192 << 20, large: 96 << 20, percent: 200}
}

// Manager is the headroom of controllers alone. A hundred clusters do not make their heap a large one.
func Manager() Headroom {
	return Headroom{rest: gcSparing, bytes: 40 << 20, large: 256 << 20, percent: 150}
}

// Workload is the headroom of a hosted control plane. There are many of them, and most have little to do.
func Workload() Headroom {
	return Headroom{rest: gcSparing, bytes: 64 << 20, large: 128 << 20, percent: gcWhileRunning}
}

const (
	// busyAllocRate is what a busy process allocates at least, in bytes per second. The cost of the collector depends on it,
	// and not on the size of the heap: a larger one takes as much longer to collect as it is collected less often.
	busyAllocRate = 8 << 20
	// idleCheck is how long after a collection it is checked whether the process is still busy.
	idleCheck = 10 * time.Second
)

// Collect keeps the heap small for as long as the process runs, and watches the collector: while the process is busy, the heap
// may grow by the headroom between two collections; afterwards, and after a start, memory is returned to the system. Otherwise a third of the
// processor time of a busy API server is the collector's. Where GOGC is set, it does nothing.
func Collect(headroom Headroom) {
	if userConfigured() {
		return
	}
	debug.SetGCPercent(headroom.rest)
	c := &collector{headroom: headroom, last: readSample(), percent: headroom.rest}
	c.idle = time.AfterFunc(idleCheck, func() { c.checkIdle(readSample()) })
	c.watch()
}

// giveBack gives the system what this process has in memory and does not need at rest.
func giveBack() {
	debug.FreeOSMemory()
	dropProgram()
}

// userConfigured reports whether the user has configured the collector.
func userConfigured() bool { return os.Getenv("GOGC") != "" }

type collector struct {
	headroom Headroom

	mu      sync.Mutex
	last    sample
	percent int
	idle    *time.Timer
}

// sample is the state of the heap at a time.
type sample struct {
	at time.Time
	// live was in use after the last collection, allocated is the total since the process began; bytes.
	live, allocated int64
}

// isBusy reports whether the process was busy since an earlier sample.
func (s sample) isBusy(since sample) bool {
	return float64(s.allocated-since.allocated) >= busyAllocRate*s.at.Sub(since.at).Seconds()
}

// watch calls collected after the next collection, and every one after that.
func (c *collector) watch() {
	type sentinel struct{ _ *sentinel }
	runtime.AddCleanup(&sentinel{}, func(c *collector) {
		c.collected(readSample())
		c.watch()
	}, c)
}

// collected is called after every collection.
func (c *collector) collected(now sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	busy := now.isBusy(c.last)
	c.last = now
	if !busy && c.percent == c.headroom.rest {
		return
	}
	c.set(percent(c.headroom, now.live))
	c.idle.Reset(idleCheck)
}

// checkIdle is called when there was no collection for a while.
func (c *collector) checkIdle(now sample) {
	if c.shrinks(now) {
		giveBack()
	}
}

// shrinks makes the heap small where the process is not busy any more, and reports whether.
func (c *collector) shrinks(now sample) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.isBusy(c.last) {
		c.last = now
		c.idle.Reset(idleCheck)
		return false
	}
	c.set(c.headroom.rest)
	return true
}

func (c *collector) set(percent int) {
	if percent != c.percent {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}

// percent is the GC percent by which a heap may grow by its headroom: the larger it is, the longer a collection takes.
func percent(h Headroom, live int64) int {
	if live >= h.large {
		return h.percent
	}
	return max(h.rest, int(100*h.bytes/max(live, 1)))
}

func readSample() sample {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(samples)
	return sample{at: time.Now(), live: int64(samples[0].Value.Uint64()), allocated: int64(samples[1].Value.Uint64())}
}
