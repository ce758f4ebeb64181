package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/heap"
	"github.com/slipwayhq/slipway/internal/pause"
)

// superviseFlag makes the background process of `slipway up -d` a supervisor that runs the management cluster as its
// child process. supervise passes all other arguments on, so it must be an argument of its own.
const superviseFlag = "--supervise"

const (
	// minRestartDelay is the delay before the management cluster is restarted. It doubles after each further exit, up
	// to maxRestartDelay, and is reset after a run of restartResetAfter.
	minRestartDelay, maxRestartDelay = time.Second, time.Minute
	restartResetAfter                = 5 * time.Minute
	// diskCheckInterval is the interval at which the supervisor checks a full disk for free space.
	diskCheckInterval = 5 * time.Second
	// childStopTimeout is the timeout for stopping the management cluster before it is killed: the timeout of its
	// hosted control planes, plus time for etcd.
	childStopTimeout = planesStopTimeout + 15*time.Second
)

// clusterSupervisor restarts the management cluster in the background. [supervise] creates it in the process of
// `slipway up --supervise`.
type clusterSupervisor struct {
	dir    datadir.Dir
	env    term.Env
	report *report
	launch func(ctx context.Context, heard func(reportLine)) (outcome, error)
	space  func(datadir.Dir) (datadir.Space, error)
	// sleep is pause.Sleep, except in tests.
	sleep func(context.Context, time.Duration) error
	// log writes a line to the log of the management cluster.
	log func(format string, args ...any)

	lock     *datadir.Lock // nil: it was not ready yet
	state    datadir.Supervision
	restarts childproc.Restarts
}

// outcome is the result of a run of the management cluster.
type outcome struct {
	exitText    string // description
	stopped     bool   // the stop was requested
	outOfMemory bool   // the kernel killed a process during the run
	last        reportLine
}

// supervise runs the management cluster until it is stopped. Before it is ready for the first time, an error is
// returned to the waiting command. Afterwards it is restarted. flags.run calls it if the flag --supervise is set.
func supervise(ctx context.Context, e term.Env, dir datadir.Dir, r *report) error {
	heap.TuneForStartup(heap.StartWorkloadMemory)() // releases the memory that the start of this program used
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool { return a == superviseFlag })
	s := &clusterSupervisor{
		dir: dir, env: e, report: r, space: datadir.SpaceOf, sleep: pause.Sleep, restarts: newRestarts(),
		launch: func(ctx context.Context, heard func(reportLine)) (outcome, error) { return runChild(ctx, args, heard) },
		log:    func(format string, args ...any) { appendLog(dir, e.Now(), format, args...) },
	}
	defer r.close()
	return s.run(ctx)
}

func newRestarts() childproc.Restarts {
	return childproc.Restarts{First: minRestartDelay, Longest: maxRestartDelay, StableAfter: restartResetAfter}
}

// run repeats runOnce until the management cluster is stopped. Without the lock, which it acquires when the cluster is
// ready, an exit ends the supervisor.
func (s *clusterSupervisor) run(ctx context.Context) error {
	for {
		began := s.env.Now()
		end, err := s.runOnce(ctx)
		switch {
		case ctx.Err() != nil || err == nil && end.stopped:
			return s.release()
		case s.lock == nil && err != nil:
			return err
		case s.lock == nil:
			s.report.send(reportLine{Ended: end.exitText}) // in case the process reported no error
			return errors.New(end.exitText)
		case end.last.Reason == datadir.ReasonHeld:
			s.log("another process holds the data directory: the supervisor exits")
			return s.release()
		case err != nil:
			end.exitText = err.Error()
		}
		if !s.pause(ctx, s.recordExit(end, began)) {
			return s.release()
		}
	}
}

// runOnce runs the management cluster once.
func (s *clusterSupervisor) runOnce(ctx context.Context) (outcome, error) {
	child, cancel := context.WithCancel(ctx)
	defer cancel()
	return s.launch(child, func(m reportLine) {
		s.report.send(m)
		if m.Ready {
			s.report.close()
			s.acquireLock(ctx)
			s.state.NextStart, s.state.Waiting = time.Time{}, ""
			s.write()
		}
	})
}

// acquireLock acquires the supervisor lock of the directory. It stops an earlier supervisor that is waiting for its
// next start, because the management cluster of this one holds the directory.
func (s *clusterSupervisor) acquireLock(ctx context.Context) {
	if s.lock != nil {
		return
	}
	if _, err := childproc.Terminate(ctx, s.dir.SupervisorLock(), childStopTimeout); err != nil {
		s.log("ending an earlier supervisor: %v", err)
	}
	lock, other, held, err := datadir.Acquire(s.dir.SupervisorLock(), datadir.CurrentProcess(s.env.Now()))
	if err != nil || held {
		s.log("the management cluster is not supervised: process %d holds the lock of its supervisor, or there is none: %v", other.PID, err)
		return
	}
	s.lock, s.state.PID = lock, os.Getpid()
}

// recordExit records an exit and returns the delay before the next start.
func (s *clusterSupervisor) recordExit(end outcome, began time.Time) time.Duration {
	now := s.env.Now()
	how := end.exitText
	switch space, err := s.space(s.dir); {
	case err == nil && space.IsFull():
		how = fmt.Sprintf("the disk of %s was full", s.dir)
	case end.last.Message != "":
		how = "it failed with an error: " + end.last.Message
	case end.outOfMemory:
		how = "the kernel killed it because this host is out of memory"
	}
	pause := s.restarts.Exited(now.Sub(began))
	s.state.Restarts++
	s.state.LastExit, s.state.LastExitAt, s.state.NextStart = how, now.UTC(), now.Add(pause).UTC()
	s.log("the management cluster exited: %s; restarting it in %s", how, pause)
	s.write()
	return pause
}

// pause waits until the next start is due and the disk has space. It reports whether ctx is still active.
func (s *clusterSupervisor) pause(ctx context.Context, d time.Duration) bool {
	if s.sleep(ctx, d) != nil {
		return false
	}
	for {
		space, err := s.space(s.dir)
		if err != nil || !space.IsFull() {
			return true
		}
		if waiting := datadir.DiskFullFault(s.dir, space, "it is started again").Message; waiting != s.state.Waiting {
			s.state.NextStart, s.state.Waiting = time.Time{}, waiting
			s.write()
		}
		if s.sleep(ctx, diskCheckInterval) != nil {
			return false
		}
	}
}

// write records the state. Errors, such as a full disk, are only logged.
func (s *clusterSupervisor) write() {
	if s.lock == nil {
		return
	}
	if err := datadir.WriteSupervision(s.dir, s.state); err != nil {
		s.log("recording the state of the supervisor: %v", err)
	}
}

func (s *clusterSupervisor) release() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Release()
}

// runChild runs this program again without the supervisor flag, and returns how it exited.
func runChild(ctx context.Context, args []string, heard func(reportLine)) (outcome, error) {
	cmd := exec.Command("/proc/self/exe", args...) // works even if the file was replaced by another version
	cmd.Args[0] = os.Args[0]
	p, reader, err := childproc.StartWithReport(cmd, childproc.Bound, reportFD)
	if err != nil {
		return outcome{}, fmt.Errorf("start the management cluster: %w", err)
	}
	defer func() { _ = reader.Close() }()
	defer context.AfterFunc(ctx, func() { _ = p.Stop(context.Background(), childStopTimeout) })()
	var end outcome
	for m := range childproc.Reports[reportLine](reader) {
		heard(m)
		end.last = m
	}
	<-p.Done()
	end.exitText, end.stopped, end.outOfMemory = p.State().String(), p.State().Success(), p.OutOfMemory()
	return end, nil
}

// appendLog writes a line of the supervisor to the log of the management cluster.
func appendLog(dir datadir.Dir, now time.Time, format string, args ...any) {
	f, err := childproc.OpenLog(dir.Log())
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	_, _ = fmt.Fprintf(f, "%s supervisor: %s\n", now.UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}
