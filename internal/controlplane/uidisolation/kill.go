package uidisolation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// scanEvery is the interval between scans for processes that were signaled, and endWithin limits the total
// time.
const (
	scanEvery = 10 * time.Millisecond
	endWithin = time.Minute
)

// UserOf returns the user of a process. Package supervisor checks with it that a recorded PID is still the control
// plane before it stops that process.
func UserOf(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(field(status, "Uid"))
}

// Kill is called by the supervisor before each start and at the end of a hosted control plane. It kills all processes
// of a control plane's user, including those that a compromised control plane started, and returns when there are none.
// It stops them first with SIGSTOP, so that they cannot start others in the meantime.
func Kill(ctx context.Context, user int) error {
	if !IsControlPlaneUser(user) {
		return fmt.Errorf("%d is not a user of a control plane", user)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, endWithin, fmt.Errorf("processes of user %d do not end", user))
	defer cancel()
	stopped := map[int]bool{}
	for {
		all, err := processesOf(user)
		if err != nil || len(all) == 0 {
			return err
		}
		signal := unix.SIGKILL
		for _, pid := range all {
			if !stopped[pid] {
				signal = unix.SIGSTOP
			}
			stopped[pid] = true
		}
		for _, pid := range all {
			if err := signalOf(pid, user, signal); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(scanEvery):
		}
	}
}

// processesOf lists the processes of a user without zombies.
func processesOf(user int) ([]int, error) {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(filepath.Base(e))
		if err != nil {
			continue
		}
		status, err := os.ReadFile(filepath.Join(e, "status"))
		if err != nil { // the process has exited
			continue
		}
		if uid, err := strconv.Atoi(field(status, "Uid")); err == nil && uid == user && !strings.HasPrefix(field(status, "State"), "Z") {
			out = append(out, pid)
		}
	}
	return out, nil
}

// signalOf signals a process if it still belongs to the user.
func signalOf(pid, user int, signal unix.Signal) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	// The process ID may have been reused, in which case fd refers to the new process.
	if now, err := UserOf(pid); err != nil || now != user {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process %d of user %d: %w", pid, user, err)
	}
	return nil
}
