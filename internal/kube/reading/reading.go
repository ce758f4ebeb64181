package reading

import (
	"context"
	"sync"
)

// Shared reads something of a namespace past the cache, which costs the API server as much as the namespace holds, whichever part is
// wanted. Callers that come while it is read share the next reading: a thousand Clusters that are deleted together do not take a thousand.
type Shared[T any] struct {
	read func(ctx context.Context, namespace string) (T, error)

	mu         sync.Mutex
	namespaces map[string]*turns[T]
}

// turns are those of one namespace. They exist as long as a caller waits.
type turns[T any] struct {
	waiting int // guarded by the lock of Shared
	begun   int // guarded by the lock of Shared

	turn   chan struct{} // is full while it is read
	answer T             // of the last reading; guarded by turn, as is last
	last   int           // which reading that was
}

// NewShared returns one that reads by the function, for one namespace at a time. What that returns is shared: callers do not change it.
func NewShared[T any](read func(ctx context.Context, namespace string) (T, error)) *Shared[T] {
	return &Shared[T]{read: read, namespaces: map[string]*turns[T]{}}
}

// Of returns what a reading brought that began after the call. A reading that fails is the failure of the caller that read; the next
// caller reads again.
func (r *Shared[T]) Of(ctx context.Context, namespace string) (T, error) {
	var none T
	t, begun := r.enter(namespace)
	defer r.leave(namespace)
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return none, ctx.Err()
	}
	if t.last <= begun { // the last one began before this call
		number := r.begin(t)
		found, err := r.read(ctx, namespace)
		if err != nil {
			return none, err
		}
		t.answer, t.last = found, number
	}
	return t.answer, nil
}

// enter waits for a reading of the namespace; those that were begun already do not count.
func (r *Shared[T]) enter(namespace string) (t *turns[T], begun int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t = r.namespaces[namespace]; t == nil {
		t = &turns[T]{turn: make(chan struct{}, 1)}
		r.namespaces[namespace] = t
	}
	t.waiting++
	return t, t.begun
}

// begin numbers a reading.
func (r *Shared[T]) begin(t *turns[T]) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.begun++
	return t.begun
}

func (r *Shared[T]) leave(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.namespaces[namespace]; t.waiting > 1 {
		t.waiting--
	} else {
		delete(r.namespaces, namespace)
	}
}
