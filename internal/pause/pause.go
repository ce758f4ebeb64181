// Package pause lets time pass that a context may cut short.
//
// Does: waits for a time, and ends before it with the context.
//
// Never: waits for anything else; what waits for an event has a timer and a channel of its own.
//
// Read first: [For].
package pause

import (
	"context"
	"time"
)

// For waits for d or until ctx ends, which it reports.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
