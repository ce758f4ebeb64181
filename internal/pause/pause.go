// Package pause waits for a fixed time and stops early when a context is cancelled, and computes the delays between
// retries.
package pause

import (
	"context"
	"time"
)

// Sleep waits for d, or until ctx is done, in which case it returns the error of ctx. Commands that watch or retry call
// it, and goroutines that supervise other processes.
func Sleep(ctx context.Context, d time.Duration) error { return Wait(ctx, d, nil) }

// Wait waits for a signal or for d, or until ctx is done, in which case it returns the error of ctx. Commands that
// watch clusters, and `slipway ui`, wait for a change with it.
func Wait(ctx context.Context, d time.Duration, signal <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-signal:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
