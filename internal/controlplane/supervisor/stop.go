package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// StopFolder stops the process of the control plane in a directory, first with SIGTERM if patience is not zero, and
// returns when it is gone. Supervision loops call it, and commands such as `slipway down` and `slipway move` do without
// a [Supervisor]. For a control plane with a separate user, it kills all processes of this user, because the content of
// the lock file is not trusted.
func StopFolder(ctx context.Context, f processconfig.Folder, patience time.Duration) error {
	user, own := uidisolation.UserOfFolder(string(f))
	if !own {
		_, err := childproc.Terminate(ctx, f.Lock(), patience)
		return err
	}
	if err := endHolder(ctx, f, user, patience); err != nil {
		return err
	}
	if err := uidisolation.Kill(ctx, user); err != nil {
		return fmt.Errorf("stop the processes of user %d: %w", user, err)
	}
	if _, held, err := datadir.Probe(f.Lock()); err != nil || !held {
		return err
	}
	// The control plane passed the open lock file to a foreign process. Deleting it allows a new control
	// plane to start.
	if err := os.Remove(f.Lock()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// endHolder stops the process in the lock file if it is a process of the control plane.
func endHolder(ctx context.Context, f processconfig.Folder, user int, patience time.Duration) error {
	holder, held, err := datadir.Probe(f.Lock())
	if err != nil || !held || holder.PID <= 0 {
		return err
	}
	err = childproc.StopUnrelated(ctx, holder.PID, patience, func() bool { return isPlane(holder.PID, f, user) })
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) { // the content of the lock file is no process
		return nil
	}
	return err
}

// isPlane reports whether a process belongs to the control plane: it runs as the user of the control plane
// or, if it was started without one, as the user of this program in the directory.
func isPlane(pid int, f processconfig.Folder, user int) bool {
	is, err := uidisolation.UserOf(pid)
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
