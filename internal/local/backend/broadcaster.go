package backend

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

// EnqueueMapper maps an event to the objects to enqueue. The controllers of LocalClusters and LocalMachines pass one to
// [Broadcaster.Source].
type EnqueueMapper func(context.Context, Event) []reconcile.Request

// Broadcaster watches the backends for the controllers of LocalClusters and LocalMachines: it sends each event to the
// work queues of both. The provider (package local) adds one to the manager.
type Broadcaster struct {
	watcher Watcher

	mu   sync.Mutex
	subs []func(Event)
}

// NewBroadcaster returns a Broadcaster that watches the backend once it is started. Package local calls it when it adds
// the provider to the manager.
func NewBroadcaster(w Watcher) *Broadcaster { return &Broadcaster{watcher: w} }

// Start implements manager.Runnable. Controllers reconcile all objects when they start, so no events are lost before
// their Source is started.
func (h *Broadcaster) Start(ctx context.Context) error { return h.watcher.Watch(ctx, h.Notify) }

// Source returns a source for controller-runtime that enqueues the objects to which the mapper maps an event. The
// controllers of LocalClusters and LocalMachines watch it.
func (h *Broadcaster) Source(of EnqueueMapper) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.subs = append(h.subs, func(e Event) {
			for _, r := range of(ctx, e) {
				queue.Add(r)
			}
		})
		return nil
	})
}

// Notify sends an event to all controllers. Callers can send events that the backend does not produce. The supervisor
// of load balancers sends the exit of a process through it.
func (h *Broadcaster) Notify(e Event) {
	h.mu.Lock()
	subs := h.subs
	h.mu.Unlock()
	for _, s := range subs {
		s(e)
	}
}

// AllObjects returns requests for all objects of the list's kind. The controllers of LocalClusters and LocalMachines
// return it for events without an object.
func AllObjects(ctx context.Context, c client.Reader, list client.ObjectList) []reconcile.Request {
	if err := c.List(ctx, list); err != nil {
		return nil
	}
	return watches.Requests(list)
}
