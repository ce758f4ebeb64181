package plane

import "runtime/debug"

// While a control plane starts it allocates much and keeps little: collecting
// garbage rarely then saves a quarter of the time. Afterwards memory counts
// more than the time of a few requests.
const (
	gcWhileStarting = 400
	gcWhileRunning  = 50
)

// starting sets the garbage collector up for a start; the function it returns,
// for what comes after, and gives memory back to the system.
func starting() (started func()) {
	debug.SetGCPercent(gcWhileStarting)
	return func() {
		debug.SetGCPercent(gcWhileRunning)
		go debug.FreeOSMemory()
	}
}
