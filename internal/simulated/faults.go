package simulated

import (
	"sync"
	"time"
)

// Faults is what is wrong with a simulated control plane on purpose.
type Faults struct {
	// Down is how long nobody answers, counted from when it was first asked for; negative: until it is taken back.
	// Zero: it answers.
	Down time.Duration
	// Slow is how long every request waits before it is answered.
	Slow time.Duration
}

// faults are the faults as they are now.
type faults struct {
	now func() time.Time

	mu     sync.Mutex
	wanted Faults
	// until is when the API server answers again; zero: it does, or never does.
	until time.Time
}

// set changes the faults. It returns when the status changes again: negative: never, zero: it has not changed.
func (f *faults) set(wanted Faults) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.wanted
	f.wanted = wanted
	if before.Down == wanted.Down {
		return 0
	}
	f.until = time.Time{}
	if wanted.Down > 0 {
		f.until = f.now().Add(wanted.Down)
		return wanted.Down
	}
	return -1
}

func (f *faults) down() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wanted.Down < 0 || f.now().Before(f.until)
}

func (f *faults) delay() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wanted.Slow
}
