package plane

import (
	"math"
	"runtime/debug"
)

// While a control plane starts it allocates much and keeps little: not
// collecting garbage saves a third of the processor time. Afterwards memory
// counts more than the time of a few requests.
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
// started runs, sets it up for running and gives memory back to the system.
func Starting(memory int64) (started func()) {
	debug.SetGCPercent(gcWhileStarting)
	debug.SetMemoryLimit(memory)
	return func() {
		debug.SetGCPercent(gcWhileRunning)
		debug.SetMemoryLimit(math.MaxInt64)
		go debug.FreeOSMemory()
	}
}
