package testkit

import (
	"context"
	"testing"
)

// RunBackground runs a function, such as Start of a manager, until the test ends, and returns the context of the
// function. When the test ends, it cancels the context and fails the test if the function returns an error. It does not
// wait until the function is ready. Tests of controllers and of extensions use it.
func RunBackground(t testing.TB, run func(context.Context) error) context.Context {
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
