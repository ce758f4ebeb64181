package creation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockRetry is the time between two attempts to lock.
const lockRetry = 50 * time.Millisecond

// Lock waits until no other command of this host is between choosing a network and applying the cluster that uses it: two commands at once
// would choose the same network. The lock is on the data directory, and ends with the process; without a data directory there is none.
func Lock(ctx context.Context, dataDir string) (release func(), err error) {
	if dataDir == "" {
		return func() {}, nil
	}
	dir, err := os.Open(dataDir)
	if err != nil {
		return nil, fmt.Errorf("waiting for other commands that create clusters: %w", err)
	}
	for {
		err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = dir.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			_ = dir.Close()
			return nil, fmt.Errorf("waiting for other commands that create clusters: %w", err)
		}
		select {
		case <-time.After(lockRetry):
		case <-ctx.Done():
			_ = dir.Close()
			return nil, ctx.Err()
		}
	}
}
