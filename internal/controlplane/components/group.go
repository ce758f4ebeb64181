package components

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Group contains the running parts of a management or workload cluster's control plane. When one ends, all end. The
// server ends after the parts that use it, because kube-controller-manager exits the process if its API server
// disappears while it starts. [Components.Run] and package controlplane create it.
type Group struct {
	parent  context.Context
	ctx     context.Context // of the parts
	cancel  context.CancelCauseFunc
	serving context.Context // of the server
	halt    context.CancelFunc
	parts   sync.WaitGroup
	servers sync.WaitGroup
	done    chan struct{}

	mu      sync.Mutex
	closing bool     // nothing more is started
	stops   []func() // run in reverse order after all parts have ended
	ended   bool     // they were run
}

// errStopped is the cause of a requested stop.
var errStopped = errors.New("stopped")

// NewGroup returns a group that runs until parent ends, Stop is called, or a part ends.
func NewGroup(parent context.Context) *Group {
	g := &Group{parent: parent, done: make(chan struct{})}
	g.ctx, g.cancel = context.WithCancelCause(parent)
	g.serving, g.halt = context.WithCancel(context.WithoutCancel(parent))
	go g.finish()
	return g
}

// Context ends when the parts must end.
func (g *Group) Context() context.Context { return g.ctx }

// Done is closed when everything has ended.
func (g *Group) Done() <-chan struct{} { return g.done }

// Run starts a part. A part that returns before the group is stopped ends the group. The control planes of package
// controlplane and [Components.Run] start their parts with it.
func (g *Group) Run(name string, f func(context.Context) error) { g.start(&g.parts, g.ctx, name, f) }

// Serve starts the server, which is stopped when all parts have ended.
func (g *Group) Serve(name string, f func(context.Context) error) {
	g.start(&g.servers, g.serving, name, f)
}

func (g *Group) start(among *sync.WaitGroup, ctx context.Context, name string, f func(context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return
	}
	among.Go(func() {
		err := f(ctx)
		if err == nil {
			err = errors.New("exited unexpectedly")
		}
		g.cancel(fmt.Errorf("%s: %w", name, err))
	})
}

// Watch ends the group when an error arrives. Package controlplane calls it for etcd.
func (g *Group) Watch(name string, errs <-chan error) {
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

// OnStop registers f to run after all parts have ended. If they have ended already, it runs at once. Package
// controlplane closes listeners and etcd with it.
func (g *Group) OnStop(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		f()
		return
	}
	g.stops = append(g.stops, f)
}

func (g *Group) finish() {
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

// Stop ends the group, waits for it, and returns the cause.
func (g *Group) Stop() error { return g.Abort(errStopped) }

// Abort ends the group because its start failed with err, waits for it, and returns the cause. The failure of
// a part takes precedence over err, which it caused. A stop that was requested before is no error.
func (g *Group) Abort(err error) error {
	g.cancel(err)
	<-g.done
	return g.Cause()
}

// Cause returns the reason why the group ended. It is nil for a stop that was requested by Stop or by the
// parent context. The failure of a part is compared by identity, because it may wrap the error of another
// context.
func (g *Group) Cause() error {
	err := context.Cause(g.ctx)
	if err == errStopped || err == context.Cause(g.parent) && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
