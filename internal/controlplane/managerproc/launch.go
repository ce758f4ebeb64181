package managerproc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/slipwayhq/slipway/internal/heap"
)

const (
	// idleInterval and busyInterval are the intervals between reads of the manager's memory, below and above
	// half of its limit.
	idleInterval, busyInterval = 500 * time.Millisecond, 50 * time.Millisecond
	// leftOpen is how long a pipe may remain open in a process that the manager left behind.
	leftOpen = 5 * time.Second
)

// managerProcess is a running manager process.
type managerProcess struct {
	cmd      *exec.Cmd
	pid      int
	log      *log
	record   *record
	report   *os.File
	messages chan message  // closed when the process can report nothing more
	ended    chan struct{} // closed when it has exited and end is complete
	end      exitState
}

// launch starts the manager. The kernel kills it when this process exits for any reason, because two managers
// would conflict.
func launch(cfg Config, input []byte) (*managerProcess, error) {
	record, err := newRecord()
	if err != nil {
		return nil, err
	}
	report, writer, err := os.Pipe()
	if err != nil {
		return nil, firstOf(err, record.Close())
	}
	p := &managerProcess{
		log: &log{to: cfg.Log}, record: record, report: report, messages: make(chan message), ended: make(chan struct{}),
	}
	p.cmd = exec.Command(cfg.Command[0], cfg.Command[1:]...)
	p.cmd.Env = os.Environ()
	if os.Getenv("GOMEMLIMIT") == "" { // the garbage collector works harder before the limit is reached
		p.cmd.Env = append(p.cmd.Env, fmt.Sprintf("GOMEMLIMIT=%d", cfg.MemoryLimit/10*9))
	}
	p.cmd.Dir = "/"
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = bytes.NewReader(input), p.log, p.log
	p.cmd.ExtraFiles = []*os.File{record.file, writer}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = leftOpen
	before := KilledByKernel()
	started := make(chan error)
	go p.live(started, before, cfg.MemoryLimit)
	err = <-started
	_ = writer.Close()
	if err != nil {
		p.close()
		return nil, err
	}
	p.pid = p.cmd.Process.Pid
	// On memory shortage, the kernel kills the manager before the API server. If this cannot be set, the
	// limit still applies.
	_ = heap.RaiseOOMScore(p.pid, heap.OOMScoreManager)
	go p.read()
	return p, nil
}

// live starts the process and waits for its exit. The parent death signal is sent when the thread that
// started the process ends, therefore the thread is locked.
func (p *managerProcess) live(started chan<- error, before, limit int64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	over, done := make(chan bool, 1), make(chan struct{})
	go func() { over <- p.watch(limit, done) }()
	_ = p.cmd.Wait() // the process state contains the result
	close(done)
	p.end = exitState{
		state: p.cmd.ProcessState, limit: limit, overLimit: <-over, outOfMemory: KilledByKernel() > before, crashLine: p.log.crashLine(),
		suspects: p.record.Suspects(),
	}
	close(p.ended)
}

// watch kills the process when it exceeds its memory limit, and reports whether it did.
func (p *managerProcess) watch(limit int64, done <-chan struct{}) bool {
	timer := time.NewTimer(idleInterval)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return false
		case <-timer.C:
		}
		used, err := resident(p.cmd.Process.Pid)
		switch {
		case err == nil && used > limit:
			_ = p.cmd.Process.Kill()
			return true
		case err == nil && used > limit/2:
			timer.Reset(busyInterval)
		default:
			timer.Reset(idleInterval)
		}
	}
}

// read forwards the reports of the process.
func (p *managerProcess) read() {
	defer close(p.messages)
	for lines := json.NewDecoder(p.report); ; {
		var m message
		if err := lines.Decode(&m); err != nil {
			_, _ = io.Copy(io.Discard, p.report)
			return
		}
		p.messages <- m
	}
}

// stop terminates the process, and kills it after a timeout.
func (p *managerProcess) stop(patience time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
	}
}

func (p *managerProcess) close() { _ = firstOf(p.report.Close(), p.record.Close()) }
