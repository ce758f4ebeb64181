package childproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/slipwayhq/slipway/internal/heap"
	"github.com/slipwayhq/slipway/internal/pause"
)

// firstExtraFile is the file descriptor of the first extra file of a child process.
const firstExtraFile = 3

// Lifetime defines whether a child process outlives this process.
type Lifetime int

const (
	// Bound processes are killed by the kernel when this process exits for any reason, because nothing would restart
	// them.
	Bound Lifetime = iota
	// Detached processes outlive this process, in a session of their own.
	Detached
)

// Process is a child process of this process, for example the manager of `slipway up`, a hosted control plane or an
// extension. A nil Process does not run.
type Process struct {
	cmd       *exec.Cmd
	ended     chan struct{} // closed when it has exited
	oomBefore int64         // number of processes that the kernel had killed before the start
}

// Start starts the command. Callers that need a report of the process use [StartWithReport], and processes that must
// not gain privileges are a [Service].
func Start(cmd *exec.Cmd, l Lifetime) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if l == Detached {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	return start(cmd, cmd.Start)
}

func start(cmd *exec.Cmd, begin func() error) (*Process, error) {
	p := &Process{cmd: cmd, ended: make(chan struct{}), oomBefore: heap.KilledByKernel()}
	started := make(chan error, 1)
	go func() {
		if cmd.SysProcAttr.Pdeathsig != 0 { // sent when the thread that started the child ends
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
		}
		err := begin()
		started <- err
		if err == nil {
			_ = cmd.Wait() // ProcessState contains the result
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// StartWithReport is Start with a pipe through which the process reports. fd is the descriptor of the pipe in the child
// process. The caller must close the returned end. It reads EOF when the process can report nothing more.
func StartWithReport(cmd *exec.Cmd, l Lifetime, fd int) (*Process, *os.File, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.ExtraFiles = slices.Insert(slices.Clip(cmd.ExtraFiles), fd-firstExtraFile, writer)
	p, err := Start(cmd, l)
	_ = writer.Close()
	if err != nil {
		_ = reader.Close()
		return nil, nil, err
	}
	return p, reader, nil
}

// Reports decodes the JSON values that a process reports. `slipway up` reads the reports of its manager and of a
// management cluster in the background with it.
func Reports[T any](report io.Reader) iter.Seq[T] {
	return func(yield func(T) bool) {
		for d := json.NewDecoder(report); ; {
			var m T
			if err := d.Decode(&m); err != nil {
				_, _ = io.Copy(io.Discard, report)
				return
			}
			if !yield(m) {
				return
			}
		}
	}
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has exited.
func (p *Process) Done() <-chan struct{} { return p.ended }

// Running reports whether the process has not exited.
func (p *Process) Running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// State returns how a process exited.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// OutOfMemory reports whether the kernel probably killed an exited process, because the host is out of memory. Packages
// managerproc and cli/up report it.
func (p *Process) OutOfMemory() bool {
	status, ok := p.State().Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL && heap.KilledByKernel() > p.oomBefore
}

// Terminate sends SIGTERM without waiting for the exit of the process. `slipway up -d` calls it if its context ends
// first.
func (p *Process) Terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

// Kill kills the process without waiting for its exit.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// Stop stops the process with SIGTERM, unless patience is zero, and after patience with SIGKILL. It returns when the
// process has exited.
func (p *Process) Stop(ctx context.Context, patience time.Duration) error {
	return p.stop(ctx, patience, func(s syscall.Signal) error {
		if err := p.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		return nil
	})
}

// StopGroup is Stop for all processes of the process group. Package extensiontools calls it for local extensions.
func (p *Process) StopGroup(ctx context.Context, patience time.Duration) error {
	signal := func(s syscall.Signal) error {
		if err := syscall.Kill(-p.PID(), s); !errors.Is(err, syscall.ESRCH) {
			return err
		}
		return nil
	}
	err := p.stop(ctx, patience, signal)
	_ = signal(syscall.SIGKILL) // other processes may outlive the first one
	return err
}

func (p *Process) stop(ctx context.Context, patience time.Duration, signal func(syscall.Signal) error) error {
	err := stopWithSignals(patience, signal, func(d time.Duration) (bool, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-p.ended:
			return true, nil
		case <-timer.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	})
	if err != nil {
		return fmt.Errorf("stop process %d: %w", p.PID(), err)
	}
	return nil
}

// Restarts counts consecutive early exits of a process that is restarted with backoff, such as the manager or the
// management cluster in the background. Packages managerproc and cli/up call [Restarts.Exited].
type Restarts struct {
	// First is the delay before the restart after the first exit. It doubles with each further exit, up to Longest.
	First, Longest time.Duration
	// StableAfter is the time after which an exit counts as the first one.
	StableAfter time.Duration
	// Exits is the number of consecutive early exits.
	Exits int
}

// Exited records an exit, and returns the delay before the restart.
func (r *Restarts) Exited(ran time.Duration) time.Duration {
	r.Exits++
	if ran >= r.StableAfter {
		r.Exits = 1
	}
	return pause.Backoff(r.Exits, r.First, r.Longest)
}
