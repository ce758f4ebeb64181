package kube

import (
	"context"
	"sync"
)

// SharedRead reads all objects of some kind in a namespace past the cache. Controllers use it before a deletion that
// must not miss an object, such as the deletion of a control plane or a template. This is expensive for the API server,
// however few of the objects a caller needs. Callers that arrive during a read share the next one: the deletion of a
// thousand Clusters does not take a thousand reads. Results are not cached.
type SharedRead[T any] struct {
	read func(ctx context.Context, namespace string) (T, error)

	mu         sync.Mutex
	namespaces map[string]*namespaceReads[T]
}

// namespaceReads holds the reads of one namespace. It exists as long as a caller waits.
type namespaceReads[T any] struct {
	waiting int // guarded by the mutex of SharedRead
	begun   int // guarded by the mutex of SharedRead

	turn   chan struct{} // full during a read
	answer T             // of the last read; guarded by turn, as is last
	last   int           // number of the last read
}

// NewSharedRead returns a SharedRead that calls read, for one namespace at a time. The result of read is shared, so
// callers must not change it.
func NewSharedRead[T any](read func(ctx context.Context, namespace string) (T, error)) *SharedRead[T] {
	return &SharedRead[T]{read: read, namespaces: map[string]*namespaceReads[T]{}}
}

// Get returns the result of a read that started after the call. If a read fails, only the caller that executed it gets
// the error; the next caller reads again.
func (r *SharedRead[T]) Get(ctx context.Context, namespace string) (T, error) {
	var none T
	t, begun := r.enter(namespace)
	defer r.leave(namespace)
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return none, ctx.Err()
	}
	if t.last <= begun { // the last one started before this call
		number := r.begin(t)
		found, err := r.read(ctx, namespace)
		if err != nil {
			return none, err
		}
		t.answer, t.last = found, number
	}
	return t.answer, nil
}

// enter registers a waiting caller; reads that have already started do not count.
func (r *SharedRead[T]) enter(namespace string) (t *namespaceReads[T], begun int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t = r.namespaces[namespace]; t == nil {
		t = &namespaceReads[T]{turn: make(chan struct{}, 1)}
		r.namespaces[namespace] = t
	}
	t.waiting++
	return t, t.begun
}

// begin returns the number of a new read.
func (r *SharedRead[T]) begin(t *namespaceReads[T]) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.begun++
	return t.begun
}

func (r *SharedRead[T]) leave(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.namespaces[namespace]; t.waiting > 1 {
		t.waiting--
	} else {
		delete(r.namespaces, namespace)
	}
}
