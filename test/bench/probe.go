package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/slipwayhq/slipway/test/bench/procfs"
)

// every is the time between two samples.
const every = 200 * time.Millisecond

// probe looks at the processes of one installation.
type probe struct {
	proc   fs.FS
	pid    int
	hosted map[int]bool // what is known of process ids
}

func newProbe(pid int) *probe {
	return &probe{proc: os.DirFS("/proc"), pid: pid, hosted: map[int]bool{}}
}

// read fails when the management cluster is gone.
func (p *probe) read() (usage, error) {
	all, err := procfs.Read(p.proc)
	if err != nil {
		return usage{}, err
	}
	at := time.Now()
	tree := all.Tree(p.pid)
	if len(tree) == 0 {
		return usage{}, errors.New("the process of the management cluster has ended")
	}
	u := divide(tree, p.isHosted)
	u.At = at
	return u, nil
}

// memory is that of the management cluster and the manager, and of the hosted control planes.
func (p *probe) memory() (own, hosted procfs.Memory, err error) {
	all, err := procfs.Read(p.proc)
	if err != nil {
		return own, hosted, err
	}
	below := map[int]bool{}
	for _, one := range all.Tree(p.pid) {
		m, err := procfs.ReadMemory(p.proc, one.PID)
		if err != nil {
			return own, hosted, err
		}
		if below[one.Parent] || p.isHosted(one.PID) {
			below[one.PID], hosted = true, hosted.Add(m)
		} else {
			own = own.Add(m)
		}
	}
	return own, hosted, nil
}

// isHosted reports whether a process was started as a hosted control plane. Between fork and exec a process has the
// command line of its parent, so only yes is remembered.
func (p *probe) isHosted(pid int) bool {
	if p.hosted[pid] {
		return true
	}
	arguments, err := procfs.Arguments(p.proc, pid)
	p.hosted[pid] = err == nil && len(arguments) > 1 && slices.Contains(arguments[1:], "control-plane")
	return p.hosted[pid]
}

// recording is samples in the making.
type recording struct {
	stop    context.CancelFunc
	done    chan struct{}
	samples []usage
	err     error
}

// record samples until stopped.
func (p *probe) record(ctx context.Context) *recording {
	ctx, stop := context.WithCancel(ctx)
	r := &recording{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			u, err := p.read()
			if err != nil {
				r.err = err
				return
			}
			r.samples = append(r.samples, u)
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return r
}

// end stops the recording and returns it.
func (r *recording) end() ([]usage, error) {
	r.stop()
	<-r.done
	return r.samples, r.err
}
