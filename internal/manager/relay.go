package manager

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

// newInformer creates an informer, as in cache.Options.
type newInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// relay feeds the unstructured informers of the manager's cache from typed informers. The manager creates one for the
// kinds of the enabled providers.
type relay struct {
	kinds map[schema.GroupVersionKind]client.Object
	// sources is closed when from is set.
	sources chan struct{}
	from    cache.Informers
}

// newRelay returns a relay for these kinds, which must be registered in the scheme. [newManager] calls it.
func newRelay(scheme *runtime.Scheme, kinds ...client.Object) (*relay, error) {
	r := &relay{kinds: map[schema.GroupVersionKind]client.Object{}, sources: make(chan struct{})}
	for _, o := range kinds {
		gvk, err := apiutil.GVKForObject(o, scheme)
		if err != nil {
			return nil, fmt.Errorf("kind to relay: %w", err)
		}
		r.kinds[gvk] = o
	}
	return r, nil
}

// wrap wraps next. Informers of unstructured objects of the relay's kinds list and watch the typed informers instead of
// the API server. The cache of the manager creates its informers with the result.
func (r *relay) wrap(next newInformer) newInformer {
	return func(lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if u, ok := o.(*unstructured.Unstructured); ok {
			if typed, ok := r.kinds[u.GroupVersionKind()]; ok {
				f := &feed{relay: r, kind: u.GroupVersionKind(), typed: typed}
				lw = listWatch{&toolscache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}}
			}
		}
		return next(lw, o, resync, indexers)
	}
}

// setSource sets the cache that contains the typed informers; lists block until then. Call it once. [newManager] calls
// it when the cache exists.
func (r *relay) setSource(c cache.Informers) {
	r.from = c
	close(r.sources)
}

// listWatch is a ListWatch for which client-go does not use streaming lists.
type listWatch struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported implements an interface of client-go.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// feed lists and watches the objects of a typed informer.
type feed struct {
	relay *relay
	kind  schema.GroupVersionKind
	typed client.Object

	mu sync.Mutex
	// open was started by the last list; the following watch continues it.
	open *stream
}

// list waits until the typed informer has synced and returns its objects.
func (f *feed) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	select {
	case <-f.relay.sources:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	source, err := f.relay.from.GetInformer(ctx, f.typed)
	if err != nil {
		return nil, fmt.Errorf("the source of unstructured objects of kind %s: %w", f.kind, err)
	}
	s, err := openStream(ctx, source, f.kind)
	if err != nil {
		return nil, fmt.Errorf("following objects of kind %s: %w", f.kind, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open != nil {
		f.open.Stop()
	}
	f.open = s
	list := &unstructured.UnstructuredList{Items: s.first()}
	list.SetGroupVersionKind(f.kind.GroupVersion().WithKind(f.kind.Kind + "List"))
	if shared, ok := source.(toolscache.SharedIndexInformer); ok {
		list.SetResourceVersion(shared.LastSyncResourceVersion())
	}
	return list, nil
}

// watch continues from the last list. Each stream can be watched only once; the error of a second watch makes a
// reflector list again.
func (f *feed) watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.open
	f.open = nil
	if s == nil {
		return nil, errors.New("no list to continue from")
	}
	return s, nil
}
