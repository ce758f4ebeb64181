package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// NewInformer creates an informer, as in cache.Options.
type NewInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// Relay feeds the unstructured informers of a cache from typed informers.
type Relay struct {
	kinds map[schema.GroupVersionKind]client.Object
	// sources is closed when from is set.
	sources chan struct{}
	from    cache.Informers
}

// New returns a relay for these kinds, which must be registered in the scheme.
func New(scheme *runtime.Scheme, kinds ...client.Object) (*Relay, error) {
	r := &Relay{kinds: map[schema.GroupVersionKind]client.Object{}, sources: make(chan struct{})}
	for _, o := range kinds {
		gvk, err := apiutil.GVKForObject(o, scheme)
		if err != nil {
			return nil, fmt.Errorf("kind to relay: %w", err)
		}
		r.kinds[gvk] = o
	}
	return r, nil
}

// Informers wraps next. Informers of unstructured objects of the relay's kinds list and watch the typed informers
// instead of the API server.
func (r *Relay) Informers(next NewInformer) NewInformer {
	return func(lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if u, ok := o.(*unstructured.Unstructured); ok {
			if typed, ok := r.kinds[u.GroupVersionKind()]; ok {
				lw = &typedListerWatcher{relay: r, kind: u.GroupVersionKind(), typed: typed}
			}
		}
		return next(lw, o, resync, indexers)
	}
}

// SetSource sets the cache that contains the typed informers; lists block until then. Call it once.
func (r *Relay) SetSource(c cache.Informers) {
	r.from = c
	close(r.sources)
}

// typedListerWatcher lists and watches the objects of a typed informer.
type typedListerWatcher struct {
	relay *Relay
	kind  schema.GroupVersionKind
	typed client.Object

	mu sync.Mutex
	// open was started by the last list; the following watch continues it.
	open *stream
}

var _ toolscache.ListerWatcher = &typedListerWatcher{}

// IsWatchListSemanticsUnSupported disables streaming lists in client-go.
func (t *typedListerWatcher) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext waits until the typed informer has synced and returns its objects.
func (t *typedListerWatcher) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	select {
	case <-t.relay.sources:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	source, err := t.relay.from.GetInformer(ctx, t.typed)
	if err != nil {
		return nil, fmt.Errorf("the source of unstructured objects of kind %s: %w", t.kind, err)
	}
	s, err := openStream(ctx, source, t.kind)
	if err != nil {
		return nil, fmt.Errorf("following objects of kind %s: %w", t.kind, err)
	}
	t.replace(s)
	list := &unstructured.UnstructuredList{Items: s.first()}
	list.SetGroupVersionKind(t.kind.GroupVersion().WithKind(t.kind.Kind + "List"))
	if shared, ok := source.(toolscache.SharedIndexInformer); ok {
		list.SetResourceVersion(shared.LastSyncResourceVersion())
	}
	return list, nil
}

// List implements toolscache.Lister.
func (t *typedListerWatcher) List(o metav1.ListOptions) (runtime.Object, error) {
	return t.ListWithContext(context.Background(), o)
}

// WatchWithContext continues from the last list.
func (t *typedListerWatcher) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		return nil, errNothingListed
	}
	s := t.open
	t.open = nil
	return s, nil
}

// Watch implements toolscache.Watcher.
func (t *typedListerWatcher) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return t.WatchWithContext(context.Background(), o)
}

// errNothingListed makes a reflector list again, because each stream can be watched only once.
var errNothingListed = errors.New("nothing was listed to go on with")

func (t *typedListerWatcher) replace(s *stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open != nil {
		t.open.Stop()
	}
	t.open = s
}
