package up

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/heap"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/logfile"
	"github.com/slipwayhq/slipway/internal/plane/managerproc"
	"github.com/slipwayhq/slipway/internal/plane/process"
)

// superviseFlag makes the background process a supervisor, which runs the management cluster as its child.
const superviseFlag = "--supervise"

const (
	// firstRestart is how long the management cluster is not started again when it ended, twice as long after each further end, up to
	// longestRestart. One that ran for steadyAfter starts over.
	firstRestart, longestRestart = time.Second, time.Minute
	steadyAfter                  = 5 * time.Minute
	// spaceEvery is how often the supervisor checks whether a full disk has space again.
	spaceEvery = 5 * time.Second
	// endWithin is how long the management cluster may take to stop before it is killed: as long as its hosted control planes, and etcd.
	endWithin = stopWithin + 15*time.Second
)

// supervisor restarts the management cluster in the background.
type supervisor struct {
	dir    datadir.Dir
	env    env.Env
	report *report
	launch func(ctx context.Context, heard func(message)) (outcome, error)
	space  func(datadir.Dir) (datadir.Space, error)
	// sleep reports whether the context still lives after the pause.
	sleep func(context.Context, time.Duration) bool
	// log writes a line to the log of the management cluster.
	log func(format string, args ...any)

	lock  *datadir.Lock // nil: it was not ready yet
	state datadir.Supervision
	soon  int // ends in a row that came before steadyAfter
}

// outcome is how a run of the management cluster ended.
type outcome struct {
	how         string // in words
	stopped     bool   // it was requested
	outOfMemory bool   // the kernel killed something meanwhile
	last        message
}

// supervise runs the management cluster until it is stopped. What goes wrong before it is ready for the first time is the error of the command
// that waits for it; afterwards it is started again.
func supervise(ctx context.Context, e env.Env, dir datadir.Dir, r *report) error {
	heap.Starting(heap.StartWorkloadMemory)() // gives back what the start of this program took
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool { return a == superviseFlag })
	s := &supervisor{
		dir: dir, env: e, report: r, space: datadir.SpaceOf, sleep: sleepFor,
		launch: func(ctx context.Context, heard func(message)) (outcome, error) { return runChild(ctx, args, heard) },
		log:    func(format string, args ...any) { appendLog(dir, e.Now(), format, args...) },
	}
	defer r.close()
	return s.run(ctx)
}

func (s *supervisor) run(ctx context.Context) error {
	for {
		began := s.env.Now()
		end, err := s.once(ctx)
		switch {
		case ctx.Err() != nil || err == nil && end.stopped:
			return s.release()
		case s.lock == nil && err != nil:
			return err
		case s.lock == nil:
			s.report.send(message{Ended: end.how}) // for where it gave no reason
			return errors.New(end.how)
		case end.last.Reason == datadir.ReasonHeld:
			s.log("another process holds the data directory: the supervisor ends")
			return s.release()
		case err != nil:
			end.how = err.Error()
		}
		if !s.pause(ctx, s.ended(end, began)) {
			return s.release()
		}
	}
}

// once runs the management cluster once.
func (s *supervisor) once(ctx context.Context) (outcome, error) {
	child, cancel := context.WithCancel(ctx)
	defer cancel()
	return s.launch(child, func(m message) {
		s.report.send(m)
		if m.Ready {
			s.report.close()
			s.becomeOne(ctx)
			s.state.NextStart, s.state.Waiting = time.Time{}, ""
			s.write()
		}
	})
}

// becomeOne takes the supervisor's lock of the directory. An earlier supervisor, whose turn to start has not come, is ended: this one's management
// cluster holds the directory.
func (s *supervisor) becomeOne(ctx context.Context) {
	if s.lock != nil {
		return
	}
	if _, err := process.Terminate(ctx, s.dir.SupervisorLock(), endWithin); err != nil {
		s.log("ending an earlier supervisor: %v", err)
	}
	host, _ := os.Hostname()
	holder := datadir.Holder{PID: os.Getpid(), Host: host, Since: s.env.Now().UTC(), Version: buildinfo.Version()}
	lock, other, held, err := datadir.Acquire(s.dir.SupervisorLock(), holder)
	if err != nil || held {
		s.log("the management cluster is not supervised: process %d holds the lock of its supervisor, or there is none: %v", other.PID, err)
		return
	}
	s.lock, s.state.PID = lock, os.Getpid()
}

// ended records an end and returns for how long to wait.
func (s *supervisor) ended(end outcome, began time.Time) time.Duration {
	now := s.env.Now()
	if s.soon++; now.Sub(began) >= steadyAfter {
		s.soon = 1
	}
	how := end.how
	switch space, err := s.space(s.dir); {
	case err == nil && space.IsFull():
		how = fmt.Sprintf("the disk of %s was full", s.dir)
	case end.last.Message != "":
		how = "it ended with an error: " + end.last.Message
	case end.outOfMemory:
		how = "the kernel killed it because this host is out of memory"
	}
	pause := min(firstRestart<<min(s.soon-1, 10), longestRestart)
	s.state.Restarts++
	s.state.LastExit, s.state.LastExitAt, s.state.NextStart = how, now.UTC(), now.Add(pause).UTC()
	s.log("the management cluster ended: %s; restarting it in %s", how, pause)
	s.write()
	return pause
}

// pause waits until the next start is due and the disk has space. It reports whether ctx still lives.
func (s *supervisor) pause(ctx context.Context, d time.Duration) bool {
	if !s.sleep(ctx, d) {
		return false
	}
	for {
		space, err := s.space(s.dir)
		if err != nil || !space.IsFull() {
			return true
		}
		if waiting := datadir.Full(s.dir, space, "it is started again").Message; waiting != s.state.Waiting {
			s.state.NextStart, s.state.Waiting = time.Time{}, waiting
			s.write()
		}
		if !s.sleep(ctx, spaceEvery) {
			return false
		}
	}
}

// write records the state. That it cannot, as on a full disk, is no reason to stop.
func (s *supervisor) write() {
	if s.lock == nil {
		return
	}
	if err := datadir.WriteSupervision(s.dir, s.state); err != nil {
		s.log("recording the state of the supervisor: %v", err)
	}
}

func (s *supervisor) release() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Release()
}

// runChild runs this program once more, without the flag of the supervisor, and returns how it ended. The kernel kills it when this process ends
// without stopping it: nothing would restart it.
func runChild(ctx context.Context, args []string, heard func(message)) (outcome, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return outcome{}, err
	}
	defer func() { _ = reader.Close() }()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...) // also where another version has taken the place of the file
	cmd.Args[0] = os.Args[0]
	cmd.ExtraFiles = []*os.File{writer}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endWithin
	before := managerproc.KilledByKernel()
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		// The kernel's signal at the end of this process is one at the end of the thread that started the other.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the state says how it ended
		}
	}()
	err = <-started
	_ = writer.Close()
	if err != nil {
		return outcome{}, fmt.Errorf("start the management cluster: %w", err)
	}
	var end outcome
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) == nil {
			heard(m)
			end.last = m
		}
	}
	<-ended
	end.how = cmd.ProcessState.String()
	end.stopped = cmd.ProcessState.Success()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	end.outOfMemory = ok && status.Signaled() && status.Signal() == syscall.SIGKILL && managerproc.KilledByKernel() > before
	return end, nil
}

func sleepFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// appendLog writes a line of the supervisor, which has no log of its own.
func appendLog(dir datadir.Dir, now time.Time, format string, args ...any) {
	f, err := logfile.Open(dir.Log())
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	_, _ = fmt.Fprintf(f, "%s supervisor: %s\n", now.UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}
