package managerproc

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/heap"
)

const (
	// idleInterval and busyInterval are the intervals between reads of the manager's memory, below and above
	// half of its limit.
	idleInterval, busyInterval = 500 * time.Millisecond, 50 * time.Millisecond
	// leftOpen is how long a pipe may remain open in a process that the manager left behind.
	leftOpen = 5 * time.Second
)

// managerProcess is a running manager process. [Run] has at most one.
type managerProcess struct {
	*childproc.Process
	log    *log
	record *record
	report *os.File
	limit  int64
	over   chan bool // whether it was killed because it exceeded the limit
}

// launch starts the manager for [Run]. It is bound to this process, because two managers would conflict.
func launch(cfg Config, input []byte) (*managerProcess, error) {
	record, err := newRecord()
	if err != nil {
		return nil, err
	}
	p := &managerProcess{log: &log{to: cfg.Log}, record: record, limit: cfg.MemoryLimit, over: make(chan bool, 1)}
	cmd := exec.Command(cfg.Command[0], cfg.Command[1:]...)
	cmd.Env = os.Environ()
	if os.Getenv("GOMEMLIMIT") == "" { // the garbage collector works harder before the limit is reached
		cmd.Env = append(cmd.Env, fmt.Sprintf("GOMEMLIMIT=%d", cfg.MemoryLimit/10*9))
	}
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), p.log, p.log
	cmd.ExtraFiles = []*os.File{record.file}
	cmd.WaitDelay = leftOpen
	if p.Process, p.report, err = childproc.StartWithReport(cmd, childproc.Bound, reportFD); err != nil {
		return nil, firstOf(err, record.Close())
	}
	// On memory shortage, the kernel kills the manager before the API server. If this cannot be set, the
	// limit still applies.
	_ = heap.RaiseOOMScore(p.PID(), heap.OOMScoreManager)
	go func() { p.over <- p.watch() }()
	return p, nil
}

// watch kills the process when it exceeds its memory limit, and reports whether it did.
func (p *managerProcess) watch() bool {
	timer := time.NewTimer(idleInterval)
	defer timer.Stop()
	for {
		select {
		case <-p.Done():
			return false
		case <-timer.C:
		}
		switch used := heap.Resident(p.PID()); {
		case used > p.limit:
			p.Kill()
			return true
		case used > p.limit/2:
			timer.Reset(busyInterval)
		default:
			timer.Reset(idleInterval)
		}
	}
}

// exit waits for the exit of the process. follow (run.go) calls it.
func (p *managerProcess) exit() exitState {
	<-p.Done()
	return exitState{
		state: p.State(), limit: p.limit, overLimit: <-p.over, outOfMemory: p.OutOfMemory(), crashLine: p.log.crashLine(),
		suspects: p.record.Suspects(),
	}
}

// close releases the pipes and the record of an exited process. follow (run.go) calls it.
func (p *managerProcess) close() { _ = firstOf(p.report.Close(), p.record.Close()) }
