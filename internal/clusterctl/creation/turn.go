package creation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// turnRetry is the time between two attempts to have the turn.
const turnRetry = 50 * time.Millisecond

// Turn waits until no other command of this host is between choosing a network and applying the cluster that uses it, and returns what ends
// the turn: two commands at once would choose the same network. The turn is a lock of the data directory, which ends with the process;
// where there is no data directory, no turn is needed.
func Turn(ctx context.Context, dataDir string) (end func(), err error) {
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
		case <-time.After(turnRetry):
		case <-ctx.Done():
			_ = dir.Close()
			return nil, ctx.Err()
		}
	}
}
