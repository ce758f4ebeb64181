package remote

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/fault"
)

// The workers of a controller serve all clusters. So that those of a cluster whose API is slow do not wait for
// it all at once while the others are not served, few calls go to one cluster at the same time, one alone where
// calls take long, and few to all those clusters together. Who finds the gate closed fails at once with ErrBusy.
const (
	// callsAtOnce is how many calls go to one cluster at the same time.
	callsAtOnce = 10
	// slowCallsAtOnce is how many calls go to all slow clusters together.
	slowCallsAtOnce = 10
	// slowCall is how long a call takes that makes its cluster a slow one, until one takes less.
	slowCall = 2 * time.Second
	// queueing is how long to wait for others to leave a gate, and for a cache that begins to fill.
	queueing = 250 * time.Millisecond
)

// ErrBusy says that calls to the workload cluster take so long that one more would only keep its caller from
// serving other clusters. It is of kind fault.Unreachable; use errors.Is.
var ErrBusy error = fault.New(fault.Unreachable, "Busy", "the workload cluster answers slowly")

// gate counts the calls to one cluster.
type gate struct {
	slots chan struct{}
	// lane is common to the gates of all clusters.
	lane chan struct{}

	mu sync.Mutex
	// slow: the last call that ended took long.
	slow bool
	// since are the times at which the calls inside began.
	since map[int]time.Time
	next  int
}

func newGate(lane chan struct{}) *gate {
	return &gate{slots: make(chan struct{}, callsAtOnce), lane: lane, since: map[int]time.Time{}}
}

// enter returns what to call when the call has ended, or ErrBusy.
func (g *gate) enter(ctx context.Context) (func(), error) {
	if g.isSlow() {
		return g.enterSlow()
	}
	timer := time.NewTimer(queueing)
	defer timer.Stop()
	select {
	case g.slots <- struct{}{}:
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.begin(func() { <-g.slots }), nil
	case <-timer.C:
		return nil, busy(queueing)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// enterSlow lets a call to a slow cluster through if it is the only one, and few go to others like it.
func (g *gate) enterSlow() (func(), error) {
	select {
	case g.lane <- struct{}{}:
	default:
		return nil, busy(busyAgain)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.since) > 0 {
		<-g.lane
		return nil, busy(busyAgain)
	}
	return g.begin(func() { <-g.lane }), nil
}

// isSlow reports whether the last call took long, or one that has not ended does.
func (g *gate) isSlow() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.since {
		if time.Since(t) > slowCall {
			return true
		}
	}
	return g.slow
}

// begin notes that a call begins; the caller holds g.mu.
func (g *gate) begin(leave func()) func() {
	began, id := time.Now(), g.next
	g.next++
	g.since[id] = began
	return func() {
		leave()
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.since, id)
		g.slow = time.Since(began) > slowCall
	}
}

// do makes a call.
func (g *gate) do(ctx context.Context, call func() error) error {
	leave, err := g.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return call()
}

// guard makes every call of a client go through the gate.
func (g *gate) guard(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return g.do(ctx, func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return g.do(ctx, func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return g.do(ctx, func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return g.do(ctx, func() error { return c.Delete(ctx, o, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteAllOfOption) error {
			return g.do(ctx, func() error { return c.DeleteAllOf(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return g.do(ctx, func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return g.do(ctx, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return g.do(ctx, func() error { return c.Apply(ctx, o, opts...) })
		},
		SubResource: func(c client.WithWatch, name string) client.SubResourceClient {
			return guardedSubResource{next: c.SubResource(name), gate: g}
		},
	})
}

// guardedSubResource makes the calls for a subresource, such as evictions, go through the gate.
type guardedSubResource struct {
	next client.SubResourceClient
	gate *gate
}

func (s guardedSubResource) Get(ctx context.Context, o, sub client.Object, opts ...client.SubResourceGetOption) error {
	return s.gate.do(ctx, func() error { return s.next.Get(ctx, o, sub, opts...) })
}

func (s guardedSubResource) Create(ctx context.Context, o, sub client.Object, opts ...client.SubResourceCreateOption) error {
	return s.gate.do(ctx, func() error { return s.next.Create(ctx, o, sub, opts...) })
}

func (s guardedSubResource) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.gate.do(ctx, func() error { return s.next.Update(ctx, o, opts...) })
}

func (s guardedSubResource) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.gate.do(ctx, func() error { return s.next.Patch(ctx, o, p, opts...) })
}

func (s guardedSubResource) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return s.gate.do(ctx, func() error { return s.next.Apply(ctx, o, opts...) })
}
