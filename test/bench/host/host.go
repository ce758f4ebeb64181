package host

import (
	"context"
	"os"
	"time"

	"github.com/slipwayhq/slipway/test/bench/procfs"
	"github.com/slipwayhq/slipway/test/bench/settle"
)

const (
	// Most is which part of the processors' time the host may give to others while something is measured: next to nothing.
	// Where a single stall decides, it is 75 ms of each processor in 15 s.
	Most = 0.005
	// sayAgain is how often to say that the host is being waited for.
	sayAgain = time.Minute
)

// Host is the host of this virtual machine, which lends its processors to others, too. On a machine that is no one's guest it
// never takes anything.
type Host struct {
	Held  time.Duration // for how long it has held the benchmark up
	Again int           // how often something had to be measured again

	patience time.Duration // for how long it may
	said     time.Duration // what Held was when it was last said that the host is being waited for

	cpu   func() (procfs.CPU, error)
	pause func(context.Context, time.Duration) error
	say   func(format string, args ...any)
}

// New returns the host. It may hold the benchmark up for as long as patience, in all; say tells people that it does.
func New(patience time.Duration, say func(string, ...any)) *Host {
	return &Host{
		patience: patience, said: -sayAgain, pause: settle.Pause, say: say,
		cpu: func() (procfs.CPU, error) { return procfs.ReadCPU(os.DirFS("/proc")) },
	}
}

// During returns which part of the processors' time the host gave to others while do was done.
func (h *Host) During(do func() error) (stolen float64, err error) {
	began, err := h.cpu()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	ended, err := h.cpu()
	return ended.StolenSince(began), err
}

// Quiet waits for a moment in which the host gives next to nothing to others; for one moment where there is no patience left.
func (h *Host) Quiet(ctx context.Context, moment time.Duration) error {
	for {
		stolen, err := h.During(func() error { return h.pause(ctx, moment) })
		if err != nil || stolen <= Most || h.impatient() {
			return err
		}
		h.Held += moment
		if h.Held >= h.said+sayAgain {
			h.said = h.Held
			h.say("the host gives %.1f %% of the processors' time to others: waiting until it does not, for another %v at most",
				100*stolen, max(0, h.patience-h.Held))
		}
	}
}

// Spoiled reports whether what was measured does not count because of what the host took, so that what took that long has to be
// done again.
func (h *Host) Spoiled(stolen float64, took time.Duration) bool {
	if stolen <= Most || h.impatient() {
		return false
	}
	h.Held += took
	h.Again++
	h.say("the host took %.2f %% of the processors' time: once more", 100*stolen)
	return true
}

func (h *Host) impatient() bool { return h.Held >= h.patience }
