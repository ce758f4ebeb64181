package world

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/slipwayhq/slipway/internal/plan/memory"
)

// errNotSimulated is returned by methods of the manager and its cache that no controller needs.
var errNotSimulated = errors.New("not available in the simulation of a plan")

// cacheOf is the manager's cache as one source of controller-runtime (a watch of a controller) uses it, in the
// simulation of `slipway plan`. Sources register their handlers in separate goroutines: each call of GetCache adds one
// source to World.expected, each registration removes one, and the World waits for zero before it continues, so that
// the result does not depend on goroutine scheduling.
type cacheOf struct {
	*memory.Reader
	world *World
}

var _ cache.Cache = &cacheOf{}

func (c *cacheOf) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(o, c.world.manager.scheme)
	if err != nil {
		return nil, err
	}
	return &informer{world: c.world, kind: gvk, example: o}, nil
}

func (c *cacheOf) GetInformerForKind(context.Context, schema.GroupVersionKind, ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, errNotSimulated
}

func (c *cacheOf) RemoveInformer(context.Context, client.Object) error { return nil }

// Start implements cache.Cache. There is nothing to start: objects are read from memory.
func (c *cacheOf) Start(context.Context) error { return nil }

func (c *cacheOf) WaitForCacheSync(context.Context) bool { return true }

// informer registers the event handlers of one source for a kind. The World calls them for each write.
type informer struct {
	world   *World
	kind    schema.GroupVersionKind
	example client.Object
}

// listener is an event handler of an informer. [World] calls it for each write of its kind.
type listener struct {
	kind    schema.GroupVersionKind
	example client.Object
	handler toolscache.ResourceEventHandler
}

// deliver passes one write to the handler. [World.deliver] calls it, in the order of the writes.
func (l *listener) deliver(r *memory.Reader, e memory.Event) {
	before, after, err := r.BeforeAndAfter(e, l.kind, l.example)
	switch {
	case err != nil: // an informer could not decode it either
	case before == nil:
		l.handler.OnAdd(after, false)
	case after == nil:
		l.handler.OnDelete(before)
	default:
		l.handler.OnUpdate(before, after)
	}
}

func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.Informer. No connection can lose events, so there is no resync.
func (i *informer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, _ time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// AddEventHandlerWithOptions implements cache.Informer. It calls the handler for the existing objects first.
func (i *informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	all, err := i.world.reader.Every(i.kind, i.example)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		h.OnAdd(o, true)
	}
	i.world.mu.Lock()
	defer i.world.mu.Unlock()
	i.world.listeners = append(i.world.listeners, &listener{kind: i.kind, example: i.example, handler: h})
	i.world.expected--
	i.world.changed.Broadcast()
	return synced{}, nil
}

func (*informer) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error { return nil }

func (*informer) AddIndexers(toolscache.Indexers) error { return errNotSimulated }

func (*informer) HasSynced() bool { return true }

func (*informer) HasSyncedChecker() toolscache.DoneChecker { return synced{} }

func (*informer) IsStopped() bool { return false }

// synced is the state of something that is ready at once: a registered handler, an informer, or the election of the
// manager.
type synced struct{}

func (synced) HasSynced() bool { return true }

func (s synced) HasSyncedChecker() toolscache.DoneChecker { return s }

func (synced) Name() string { return "memory" }

func (synced) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}
