// Package background runs something while a test lasts.
//
// Does: starts it, ends it with the test, and fails the test if it fails.
//
// Never: waits until what it started is ready.
//
// Read first: [Run].
package background

import (
	"context"
	"testing"
)

// Run runs a function, as Start of a manager, until the test ends. It returns the context that ends then.
func Run(t testing.TB, run func(context.Context) error) context.Context {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("what ran in the background: %v", err)
		}
	})
	return ctx
}
