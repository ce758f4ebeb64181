package create

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockRetry is the delay between two attempts to lock.
const lockRetry = 50 * time.Millisecond

// Lock is called by `slipway create cluster`. It waits until no other command on this host is between the selection of
// a subnet and the creation of the cluster that uses it, because concurrent commands would select the same subnet. It
// locks the data directory; the lock ends with the process. Without a data directory it does nothing.
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
