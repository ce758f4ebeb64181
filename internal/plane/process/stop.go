package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/ownuser"
	"github.com/slipwayhq/slipway/internal/plane/workload"
)

// StopFolder ends the process of the control plane in a folder, gracefully first where there is patience, and returns when it is gone. Of a
// control plane with a user of its own it ends everything that runs as that user: what its lock says may be made up.
func StopFolder(ctx context.Context, f workload.Folder, patience time.Duration) error {
	user, own := ownuser.Of(string(f))
	if !own {
		_, err := Terminate(ctx, f.Lock(), patience)
		return err
	}
	if err := endHolder(ctx, f, user, patience); err != nil {
		return err
	}
	if err := ownuser.Kill(ctx, user); err != nil {
		return fmt.Errorf("stop what runs as user %d: %w", user, err)
	}
	if _, held, err := datadir.Probe(f.Lock()); err != nil || !held {
		return err
	}
	// The control plane handed the open file to a process that is not its own. Another one is not kept from starting.
	if err := os.Remove(f.Lock()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// endHolder ends the process that the lock names, if that is one of the control plane.
func endHolder(ctx context.Context, f workload.Folder, user int, patience time.Duration) error {
	holder, held, err := datadir.Probe(f.Lock())
	if err != nil || !held || holder.PID <= 0 {
		return err
	}
	fd, err := unix.PidfdOpen(holder.PID, 0)
	if err != nil { // there is no such process
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	if !isPlane(holder.PID, f, user) {
		return nil
	}
	// Should the number be another process's by now, fd is one that has ended.
	if err := signalAndWait(ctx, fd, patience); err != nil {
		return fmt.Errorf("stop process %d: %w", holder.PID, err)
	}
	return nil
}

// isPlane reports whether a process is one of the control plane: of its user or, where the process was started without one, of this program's
// in the folder.
func isPlane(pid int, f workload.Folder, user int) bool {
	is, err := ownuser.UserOf(pid)
	if err != nil || is == user {
		return err == nil
	}
	if is != os.Geteuid() {
		return false
	}
	here, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/cwd")
	if err != nil {
		return false
	}
	folder, err := os.Stat(string(f))
	return err == nil && os.SameFile(here, folder)
}
