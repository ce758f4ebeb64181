// Package pause waits for a fixed time and stops early when a context is cancelled, and computes the delays between
// retries. Code that waits for an event uses a timer and a channel instead.
package pause

import (
	"context"
	"time"
)

// Sleep waits for d, or until ctx is done, in which case it returns the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
