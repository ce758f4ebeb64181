package plane

import (
	"math"
	"runtime/debug"
)

// While a control plane starts it allocates much and keeps little: collecting
// garbage rarely then saves a third of the processor time. Afterwards memory
// counts more than the time of a few requests.
const (
	gcWhileStarting     = 400
	gcWhileRunning      = 50
	memoryWhileStarting = 800 << 20 // bytes; near it garbage is collected as usual
)

// Starting sets the garbage collector of this process up for a start. The
// function it returns, to be called when what was to be started runs, sets it up
// for running and gives memory back to the system.
func Starting() (started func()) {
	debug.SetGCPercent(gcWhileStarting)
	debug.SetMemoryLimit(memoryWhileStarting)
	return func() {
		debug.SetGCPercent(gcWhileRunning)
		debug.SetMemoryLimit(math.MaxInt64)
		go debug.FreeOSMemory()
	}
}
