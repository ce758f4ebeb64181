package main

import (
	"context"
	"os"
	"time"

	"github.com/slipwayhq/slipway/test/bench/procfs"
	"github.com/slipwayhq/slipway/test/bench/settle"
)

const (
	// mostStolen is which part of the processors' time the host may give to others during a phase that counts. The p99 of a
	// phase is its third slowest change, so a single stall decides it: this is 75 ms of each processor, in a phase of 15 s.
	mostStolen = 0.005
	// sayAgain is how often to say that the host is being waited for.
	sayAgain = time.Minute
)

// host is the host of this virtual machine, which lends its processors to others, too: what it takes decides which phases
// count, and when the next one begins.
type host struct {
	patience time.Duration // for how long it may hold the measurement up, in all
	held     time.Duration // for how long it has
	again    int           // how many comparisons had to be made again
	said     time.Duration // what held was when it was last said that the host is being waited for

	cpu   func() (procfs.CPU, error)
	pause func(context.Context, time.Duration) error
	say   func(format string, args ...any)
}

func newHost(patience time.Duration, say func(string, ...any)) *host {
	return &host{
		patience: patience, said: -sayAgain, pause: settle.Pause, say: say,
		cpu: func() (procfs.CPU, error) { return procfs.ReadCPU(os.DirFS("/proc")) },
	}
}

// during returns which part of the processors' time the host gave to others while do was done.
func (h *host) during(do func() error) (stolen float64, err error) {
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

// quiet waits for a moment in which the host gives next to nothing to others; for one moment where there is no patience left.
func (h *host) quiet(ctx context.Context, moment time.Duration) error {
	for {
		stolen, err := h.during(func() error { return h.pause(ctx, moment) })
		if err != nil || stolen <= mostStolen || h.impatient() {
			return err
		}
		h.held += moment
		if h.held >= h.said+sayAgain {
			h.said = h.held
			h.say("the host gives %.1f %% of the processors' time to others: waiting until it does not, for another %v at most",
				100*stolen, max(0, h.patience-h.held))
		}
	}
}

// spoiled reports whether a phase does not count because of the host, so that what took that long has to be done again.
func (h *host) spoiled(p phase, took time.Duration) bool {
	if p.stolen <= mostStolen || h.impatient() {
		return false
	}
	h.held += took
	h.again++
	h.say("the host took %.2f %% of the processors' time: once more", 100*p.stolen)
	return true
}

func (h *host) impatient() bool { return h.held >= h.patience }
