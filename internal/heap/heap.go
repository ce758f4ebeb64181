package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// A starting control plane allocates much memory and retains little: disabling garbage collection saves a third of the
// processor time. Afterwards, memory matters more than processor time, until the process is busy.
const (
	gcWhileStarting = -1 // only near the limit
	gcWhileRunning  = 50
	gcSparing       = 25
)

// Memory, in bytes, that a start may use before garbage is collected.
const (
	StartManagementMemory = 640 << 20
	StartWorkloadMemory   = 208 << 20 // many can start at once, and memory fragmented by the start is not returned
	PlanMemory            = 1 << 30   // for a command that exits when it has its result
)

// TuneForStartup configures the garbage collector for a start that may use the given memory, in bytes. `slipway up`,
// hosted control planes and `slipway plan` call it first. The returned function must be called when the start has
// finished; it configures the garbage collector for normal operation and returns memory to the system. An existing
// memory limit, for example from GOMEMLIMIT, applies during the start if it is smaller, and afterwards. If GOGC is set,
// neither function does anything.
func TuneForStartup(memory int64) (started func()) {
	if userConfigured() {
		return func() {}
	}
	debug.SetGCPercent(gcWhileStarting)
	limit := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(memory, limit))
	return func() {
		debug.SetGCPercent(gcWhileRunning)
		debug.SetMemoryLimit(limit)
		go returnMemory()
	}
}

// Limit sets the soft memory limit, in bytes, near which garbage is collected regardless of processor time. The process
// can use more if it needs to. `slipway up` sets it for the process with etcd and the API server. If GOMEMLIMIT is set,
// Limit does nothing.
func Limit(memory int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory)
	}
}

// LowMemory limits the growth of the heap for the whole run of the process, at the cost of processor time. It is for
// commands that hold many objects, such as `slipway move`. If GOGC is set, LowMemory does nothing.
func LowMemory() {
	if !userConfigured() {
		debug.SetGCPercent(gcSparing)
	}
}

// Headroom limits the garbage between two collections: at rest a percentage of the heap, and more while the process is
// busy.
type Headroom struct {
	rest  int
	bytes int64
	// If more than large bytes of the heap are in use, it may grow by percent of them.
	large   int64
	percent int
}

// Management is the headroom of a management cluster, with or without controllers. The memory that an API server
// allocates for a write does not depend on the amount of stored data, but the cost of a collection does, so a large
// heap may grow to three times its size.
func Management() Headroom {
	return Headroom{rest: gcWhileRunning, bytes: 192 << 20, large: 96 << 20, percent: 200}
}

// Manager is the headroom of a process that runs only controllers. Their heap is not large even with a hundred
// clusters. Managers and `slipway ui` pass it to [Collect].
func Manager() Headroom {
	return Headroom{rest: gcSparing, bytes: 40 << 20, large: 256 << 20, percent: 150}
}

// Workload is the headroom of a hosted control plane. There are many of them, and most are idle. Hosted control planes
// pass it to [Collect].
func Workload() Headroom {
	return Headroom{rest: gcSparing, bytes: 64 << 20, large: 128 << 20, percent: gcWhileRunning}
}

const (
	// busyAllocRate is the minimum allocation rate of a busy process, in bytes per second. The cost of the collector
	// depends on this rate and not on the size of the heap: a larger heap takes longer to collect, but is collected
	// less often in proportion.
	busyAllocRate = 8 << 20
	// idleCheck is the time after a collection at which the process is checked for being idle.
	idleCheck = 10 * time.Second
)

// Collect configures the garbage collector for a small heap and then watches it: while the process is busy, the heap
// may grow by the headroom between two collections; afterwards, and after a start, memory is returned to the system.
// Without the headroom, a busy API server spends a third of its processor time on garbage collection. Management
// clusters and hosted control planes call it once, when they are ready. Managers and `slipway ui` call it at their
// start. If GOGC is set, Collect does nothing.
func Collect(headroom Headroom) {
	if userConfigured() {
		return
	}
	debug.SetGCPercent(headroom.rest)
	c := &collector{headroom: headroom, last: readSample(), percent: headroom.rest}
	c.idle = time.AfterFunc(idleCheck, func() { c.checkIdle(readSample()) })
	c.watch()
}

// returnMemory returns memory to the system that this process does not need at rest.
func returnMemory() {
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

// sample is the state of the heap at one time.
type sample struct {
	at time.Time
	// live is the memory in use after the last collection, allocated the total since the start of the process, in
	// bytes.
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

// checkIdle is called when there was no collection for idleCheck.
func (c *collector) checkIdle(now sample) {
	if c.shrinks(now) {
		returnMemory()
	}
}

// shrinks lowers the GC percentage if the process is idle, and reports whether it did.
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

// percent returns the GC percentage with which the heap may grow by its headroom.
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
