package childproc

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
)

// killTimeout is how long a killed process may take to exit.
const killTimeout = time.Minute

// Terminate stops the process that holds the lock at path, with SIGTERM and, after patience, SIGKILL. Commands such as
// `slipway down`, and packages supervisor and local/loadbalancer, call it for processes that they did not start. It
// returns when the lock is free. was reports whether the lock was held at all.
func Terminate(ctx context.Context, path string, patience time.Duration) (was bool, err error) {
	holder, held, err := datadir.Probe(path)
	if err != nil || !held {
		return false, err
	}
	err = StopUnrelated(ctx, holder.PID, patience, func() bool {
		again, still, err := datadir.Probe(path)
		return err == nil && still && again.PID == holder.PID
	})
	if err != nil {
		return true, err
	}
	return true, awaitFree(ctx, path)
}

// StopUnrelated stops a process that this process need not have started, and returns when it has exited. It uses a
// pidfd, which cannot refer to another process after the PID is reused. The process is only stopped if confirm, which
// is called after the pidfd was opened, reports that the PID belongs to the intended process. [Terminate] calls it, and
// package supervisor for a control plane whose lock file is not trusted.
func StopUnrelated(ctx context.Context, pid int, patience time.Duration, confirm func() bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if !confirm() {
		return nil
	}
	signal := func(s syscall.Signal) error {
		if err := unix.PidfdSendSignal(fd, s, nil, 0); !errors.Is(err, unix.ESRCH) {
			return err
		}
		return nil
	}
	if err := stopWithSignals(patience, signal, func(d time.Duration) (bool, error) { return pollEnd(ctx, fd, d) }); err != nil {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	return nil
}

// stopWithSignals sends SIGTERM, unless patience is zero, and SIGKILL if the process has not exited in time.
func stopWithSignals(patience time.Duration, signal func(syscall.Signal) error, await func(time.Duration) (bool, error)) error {
	for _, s := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, patience}, {syscall.SIGKILL, killTimeout}} {
		if s.wait == 0 {
			continue
		}
		if err := signal(s.signal); err != nil {
			return err
		}
		if ended, err := await(s.wait); ended || err != nil {
			return err
		}
	}
	return errors.New("it does not exit, not even after SIGKILL")
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
