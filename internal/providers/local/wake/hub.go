package wake

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/slipwayhq/slipway/internal/membership"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// Map returns the objects that an event is about.
type Map func(context.Context, backend.Event) []reconcile.Request

// Broadcaster watches one backend for several controllers.
type Broadcaster struct {
	watcher backend.Watcher

	mu   sync.Mutex
	subs []func(backend.Event)
}

// NewHub returns a hub that watches the backend once it is started.
func NewHub(w backend.Watcher) *Broadcaster { return &Broadcaster{watcher: w} }

// Start implements manager.Runnable. Controllers reconcile all objects when they start, so no events are lost before
// their Source is started.
func (h *Broadcaster) Start(ctx context.Context) error { return h.watcher.Watch(ctx, h.Notify) }

// Source returns a source for controller-runtime that enqueues the objects of the map.
func (h *Broadcaster) Source(of Map) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.subs = append(h.subs, func(e backend.Event) {
			for _, r := range of(ctx, e) {
				queue.Add(r)
			}
		})
		return nil
	})
}

// Notify sends an event to all controllers. Callers can send events that the backend does not produce.
func (h *Broadcaster) Notify(e backend.Event) {
	h.mu.Lock()
	subs := h.subs
	h.mu.Unlock()
	for _, s := range subs {
		s(e)
	}
}

// All returns requests for all objects of the list's kind.
func All(ctx context.Context, c client.Reader, list client.ObjectList) []reconcile.Request {
	if err := c.List(ctx, list); err != nil {
		return nil
	}
	return membership.Requests(list)
}
