package mirror

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/slipwayhq/slipway/internal/rootcause"
)

// runningWatch is the watch of one kind.
type runningWatch struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// stop ends the watch and waits until it does not change the Store any more.
func (w *runningWatch) stop() {
	w.cancel()
	<-w.ended
}

// applyPlan stops and starts watches, and removes the objects of kinds that are not served any more. [Mirror.Run] calls
// it after each discovery.
func (m *Mirror) applyPlan(ctx context.Context, plan watchPlan, running map[schema.GroupKind]*runningWatch) {
	for _, of := range plan.stop {
		if w := running[of]; w != nil {
			w.stop()
			delete(running, of)
		}
		for _, u := range m.Store.Objects(of, "") {
			m.Store.Drop(rootcause.RefOf(u))
		}
	}
	for _, k := range plan.start {
		if w := running[k.GroupKind()]; w != nil {
			w.stop()
		}
		watching, cancel := context.WithCancel(ctx)
		w := &runningWatch{cancel: cancel, ended: make(chan struct{})}
		running[k.GroupKind()] = w
		go func() {
			defer close(w.ended)
			m.watch(watching, k)
		}()
	}
}

// watch lists and watches one kind until the context ends.
func (m *Mirror) watch(ctx context.Context, k Kind) {
	source := m.newSource(k, func(err error) {
		if ctx.Err() == nil && !isRepeated(err) {
			m.update(k.GroupKind(), func(s *kindState) { s.err = err })
		}
	})
	objects := &kindStore{mirror: m, kind: k}
	cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, m.objects), &unstructured.Unstructured{}, objects, cache.ReflectorOptions{
		Name: m.userAgent, TypeDescription: k.Resource + "." + k.Group,
	}).RunWithContext(ctx)
}

// newSource returns what a reflector reads a kind from. Objects are trimmed as soon as they are decoded, because the reflector
// has all objects of a kind in memory before it passes them on. The function is called after each request.
func (m *Mirror) newSource(k Kind, note func(error)) *cache.ListWatch {
	resource := m.resource(k)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := resource.List(ctx, o)
			note(err)
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				list.Items[i] = *m.Store.trimmer.trim(&list.Items[i])
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := resource.Watch(ctx, o)
			note(err)
			if err != nil {
				return nil, err
			}
			return m.trimmed(w), nil
		},
	}
}

// trimmed returns a watch whose objects are trimmed. Bookmarks and errors are passed on unchanged.
func (m *Mirror) trimmed(w watch.Interface) watch.Interface {
	events := make(chan watch.Event)
	out := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer w.Stop()
		for {
			var e watch.Event
			var isOpen bool
			select {
			case e, isOpen = <-w.ResultChan():
			case <-out.StopChan():
			}
			if !isOpen {
				return
			}
			if u, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Bookmark && e.Type != watch.Error {
				e.Object = m.Store.trimmer.trim(u)
			}
			select {
			case events <- e:
			case <-out.StopChan():
				return
			}
		}
	}()
	return out
}

// isRepeated reports whether the reflector repeats a request at once in another form: from the latest version, or as a list.
func isRepeated(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err)
}

// kindStore passes the objects of one kind to the Store.
type kindStore struct {
	mirror *Mirror
	kind   Kind
}

var _ cache.ReflectorStore = &kindStore{}

// Add implements cache.ReflectorStore.
func (k *kindStore) Add(o any) error {
	if u, ok := o.(*unstructured.Unstructured); ok {
		k.mirror.Store.put(u)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (k *kindStore) Update(o any) error { return k.Add(o) }

// Delete implements cache.ReflectorStore.
func (k *kindStore) Delete(o any) error {
	if u, ok := o.(*unstructured.Unstructured); ok {
		k.mirror.Store.Drop(rootcause.RefOf(u))
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (k *kindStore) Replace(objects []any, _ string) error {
	present := map[types.UID]bool{}
	for _, o := range objects {
		if u, ok := o.(*unstructured.Unstructured); ok {
			present[u.GetUID()] = true
			k.mirror.Store.put(u)
		}
	}
	for _, u := range k.mirror.Store.Objects(k.kind.GroupKind(), "") {
		if !present[u.GetUID()] {
			k.mirror.Store.Drop(rootcause.RefOf(u))
		}
	}
	k.mirror.update(k.kind.GroupKind(), func(s *kindState) { s.synced, s.err = true, nil })
	return nil
}

// Resync implements cache.ReflectorStore.
func (k *kindStore) Resync() error { return nil }
