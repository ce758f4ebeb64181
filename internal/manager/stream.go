package manager

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stream receives the events of a typed informer, which [relay] passes to an unstructured one: first the existing
// objects, then each change. The informer buffers events that the stream has not received yet. The event channel
// remains open after Stop, because the informer may be about to send an event.
type stream struct {
	*watch.ProxyWatcher
	kind   schema.GroupVersionKind
	events chan watch.Event

	mu      sync.Mutex
	initial []unstructured.Unstructured // the existing objects when the stream began
	err     error
}

// openStream returns a stream that has received all existing objects. The stream stops with ctx even if nothing watches
// it yet, because an informer does not stop before its handlers have returned. The [relay] calls it for each list of an
// unstructured informer.
func openStream(ctx context.Context, source cache.Informer, kind schema.GroupVersionKind) (*stream, error) {
	events := make(chan watch.Event)
	s := &stream{ProxyWatcher: watch.NewProxyWatcher(events), kind: kind, events: events}
	handle, err := source.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{AddFunc: s.added, UpdateFunc: s.updated, DeleteFunc: s.deleted})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, s.Stop)
	go func() {
		<-s.StopChan()
		_ = source.RemoveEventHandler(handle) // fails only if the informer has stopped, which then sends no more events
	}()
	select {
	case <-handle.HasSyncedChecker().Done():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		s.Stop()
	}
	return s, s.err
}

// first returns the existing objects when the stream began. A second call returns nothing. The [relay] returns them as
// the result of the list.
func (s *stream) first() []unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	existing := s.initial
	s.initial = nil
	return existing
}

func (s *stream) added(o any, isInInitialList bool) {
	if !isInInitialList {
		s.send(watch.Added, o)
		return
	}
	u, err := s.convert(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.err = err
		return
	}
	s.initial = append(s.initial, *u)
}

// updated drops resync events, because the informer that consumes the stream resyncs as well.
func (s *stream) updated(before, after any) {
	old, ok1 := before.(client.Object)
	o, ok2 := after.(client.Object)
	if ok1 && ok2 && old.GetResourceVersion() == o.GetResourceVersion() {
		return
	}
	s.send(watch.Modified, after)
}

func (s *stream) deleted(o any) {
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	s.send(watch.Deleted, o)
}

// send sends an event and blocks until it is received or the stream stops. An object that cannot be converted becomes
// an error event: the reflector lists again, and that list returns the conversion error.
func (s *stream) send(what watch.EventType, o any) {
	event := watch.Event{Type: what}
	u, err := s.convert(o)
	if err != nil {
		status := apierrors.NewInternalError(err).Status()
		event = watch.Event{Type: watch.Error, Object: &status}
	} else {
		event.Object = u
	}
	select {
	case s.events <- event:
	case <-s.StopChan():
	}
}

func (s *stream) convert(o any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("converting %T: %w", o, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(s.kind)
	return u, nil
}
