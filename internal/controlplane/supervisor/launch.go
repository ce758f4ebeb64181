package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
)

// graceful is how long a control plane may take to stop before it is killed.
const graceful = 15 * time.Second

// launched is a process that this process started.
type launched struct {
	process *os.Process
	ended   chan struct{} // closed when it has exited
	how     string        // how it exited; read only after ended is closed
}

// lives reports whether the process is still running. It is false for nil.
func (l *launched) lives() bool {
	if l == nil {
		return false
	}
	select {
	case <-l.ended:
		return false
	default:
		return true
	}
}

// end stops the process, first with SIGTERM if patience is not zero, and returns when it is gone.
func (l *launched) end(ctx context.Context, patience time.Duration) error {
	for _, s := range []struct {
		signal os.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, patience}, {syscall.SIGKILL, time.Minute}} {
		if s.wait == 0 {
			continue
		}
		if err := l.process.Signal(s.signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		timer := time.NewTimer(s.wait)
		defer timer.Stop()
		select {
		case <-l.ended:
			return nil
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("process %d does not end, not even by SIGKILL", l.process.Pid)
}

// launch starts the process in a separate session, so that it outlives this one. It changes to the user,
// unless this is 0.
func launch(command []string, f processconfig.Folder, user int) (*launched, error) {
	args := append(command[1:len(command):len(command)], f.Config())
	open := OpenLog
	if user != 0 {
		args = append(args, "--user", strconv.Itoa(user))
		open = func(path string) (*os.File, error) { return openFor(user, path) }
	}
	log, err := open(f.Log())
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(command[0], args...)
	cmd.Dir = string(f)
	cmd.Stdout, cmd.Stderr = log, log
	if err := Detach(cmd); err != nil {
		return nil, err
	}
	l := &launched{process: cmd.Process, ended: make(chan struct{})}
	go func() {
		l.how = ending(cmd.Wait())
		close(l.ended)
	}()
	return l, nil
}

func ending(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// StopAll stops all control planes below root, including those that an earlier process of Slipway started.
func StopAll(ctx context.Context, root string) error {
	all, err := Inspect(root)
	if err != nil {
		return err
	}
	errs := make([]error, len(all))
	done := make(chan struct{}, len(all))
	for i, st := range all {
		go func() {
			defer func() { done <- struct{}{} }()
			errs[i] = StopFolder(ctx, processconfig.Folder(root+"/"+st.Name), graceful)
		}()
	}
	for range all {
		<-done
	}
	return errors.Join(errs...)
}

// Terminate stops the process that holds the lock at path, with SIGTERM and, after patience, SIGKILL. It
// returns when the lock is free. was reports whether the lock was held at all. It uses a pidfd, which cannot
// refer to another process after the PID is reused.
func Terminate(ctx context.Context, path string, patience time.Duration) (was bool, err error) {
	holder, held, err := datadir.Probe(path)
	if err != nil || !held {
		return false, err
	}
	fd, err := unix.PidfdOpen(holder.PID, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return true, fmt.Errorf("stop process %d: %w", holder.PID, err)
	}
	if err == nil {
		defer func() { _ = unix.Close(fd) }()
		// The same process still holds the lock, therefore fd refers to it.
		if again, still, err := datadir.Probe(path); err == nil && still && again.PID == holder.PID {
			if err := signalAndWait(ctx, fd, patience); err != nil {
				return true, fmt.Errorf("stop process %d: %w", holder.PID, err)
			}
		}
	}
	return true, awaitFree(ctx, path)
}

// signalAndWait returns when the process has exited.
func signalAndWait(ctx context.Context, fd int, patience time.Duration) error {
	for _, s := range []struct {
		signal unix.Signal
		wait   time.Duration
	}{{unix.SIGTERM, patience}, {unix.SIGKILL, time.Minute}} {
		if err := unix.PidfdSendSignal(fd, s.signal, nil, 0); err != nil {
			if errors.Is(err, unix.ESRCH) {
				return nil
			}
			return err
		}
		ended, err := pollEnd(ctx, fd, s.wait)
		if ended || err != nil {
			return err
		}
	}
	return errors.New("it does not end, not even by SIGKILL")
}

// pollEnd waits until the process of fd has exited, which makes fd readable.
func pollEnd(ctx context.Context, fd int, wait time.Duration) (bool, error) {
	for deadline := time.Now().Add(wait); time.Now().Before(deadline); {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 100)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false, err
		}
		if n > 0 {
			return true, nil
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
	return false, nil
}

// awaitFree waits until the kernel has released the lock of a process that exited.
func awaitFree(ctx context.Context, path string) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		_, held, err := datadir.Probe(path)
		if err != nil || !held {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
