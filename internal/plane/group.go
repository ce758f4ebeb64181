package plane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// group is the running parts of a control plane: when one ends, all end. The
// server ends after the parts that use it: kube-controller-manager exits the
// whole process when its API server is gone while it starts.
type group struct {
	ctx     context.Context // of the parts
	cancel  context.CancelCauseFunc
	serving context.Context // of the server
	halt    context.CancelFunc
	parts   sync.WaitGroup
	servers sync.WaitGroup
	done    chan struct{}

	mu      sync.Mutex
	closing bool     // nothing more is started
	stops   []func() // run last to first after all parts have ended
	ended   bool     // they were run
}

// errStopped is the cause of a requested stop.
var errStopped = errors.New("stopped")

func newGroup(parent context.Context) *group {
	g := &group{done: make(chan struct{})}
	g.ctx, g.cancel = context.WithCancelCause(parent)
	g.serving, g.halt = context.WithCancel(context.WithoutCancel(parent))
	go g.finish()
	return g
}

// run starts a part. A part that returns before the group is stopped ends it.
func (g *group) run(name string, f func(context.Context) error) { g.start(&g.parts, g.ctx, name, f) }

// serve starts the server: it is stopped when every part has ended.
func (g *group) serve(name string, f func(context.Context) error) {
	g.start(&g.servers, g.serving, name, f)
}

func (g *group) start(among *sync.WaitGroup, ctx context.Context, name string, f func(context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return
	}
	among.Go(func() {
		err := f(ctx)
		if err == nil {
			err = errors.New("ended unexpectedly")
		}
		g.cancel(fmt.Errorf("%s: %w", name, err))
	})
}

// watch ends the group when an error arrives.
func (g *group) watch(name string, errs <-chan error) {
	go func() {
		select {
		case err, ok := <-errs:
			if ok {
				g.cancel(fmt.Errorf("%s: %w", name, err))
			}
		case <-g.ctx.Done():
		}
	}()
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
	<-g.ctx.Done()
	g.mu.Lock()
	g.closing = true
	g.mu.Unlock()
	g.parts.Wait()
	g.halt()
	g.servers.Wait()
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

// cause is why the group ended: nil for a requested stop.
func (g *group) cause() error {
	err := context.Cause(g.ctx)
	if errors.Is(err, errStopped) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
