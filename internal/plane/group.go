package plane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// group is the running parts of a control plane: when one ends, all end.
type group struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	parts  sync.WaitGroup
	done   chan struct{}

	mu    sync.Mutex
	stops []func() // run last to first after all parts have ended
	ended bool     // they were run
}

// errStopped is the cause of a stop that was asked for.
var errStopped = errors.New("stopped")

func newGroup(ctx context.Context) *group {
	ctx, cancel := context.WithCancelCause(ctx)
	g := &group{ctx: ctx, cancel: cancel, done: make(chan struct{})}
	g.parts.Add(1)
	go func() {
		defer g.parts.Done()
		<-ctx.Done()
	}()
	go g.finish()
	return g
}

// run starts a part. A part that returns before the group is stopped ends it.
func (g *group) run(name string, f func(context.Context) error) {
	g.parts.Go(func() {
		err := f(g.ctx)
		if err == nil {
			err = errors.New("ended unexpectedly")
		}
		g.cancel(fmt.Errorf("%s: %w", name, err))
	})
}

// watch ends the group when an error arrives.
func (g *group) watch(name string, errs <-chan error) {
	g.parts.Go(func() {
		select {
		case err, ok := <-errs:
			if ok {
				g.cancel(fmt.Errorf("%s: %w", name, err))
			}
		case <-g.ctx.Done():
		}
	})
}

// onStop registers f to be run when all parts have ended, which may be now.
func (g *group) onStop(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		f()
		return
	}
	g.stops = append(g.stops, f)
}

func (g *group) finish() {
	g.parts.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range slices.Backward(g.stops) {
		f()
	}
	g.ended = true
	close(g.done)
}

// stop ends the group, waits for it, and returns why it ended.
func (g *group) stop() error {
	g.cancel(errStopped)
	<-g.done
	return g.cause()
}

// cause is why the group ended: nil for a stop that was asked for.
func (g *group) cause() error {
	err := context.Cause(g.ctx)
	if errors.Is(err, errStopped) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
