package remote

import (
	"context"
	"slices"
	"sync"
)

// slots limits the calls to hosts that run at the same time. Slow hosts of one namespace cannot delay the hosts of others: a
// quarter of the slots remains for other namespaces, and namespaces that wait get free slots in turn.
type slots struct {
	// total is the number of slots, most the number that one namespace may have.
	total, most int

	mu    sync.Mutex
	taken map[string]int
	inUse int
	// waiting are the calls of each namespace that wait, and turns the namespaces with such calls, the next one first.
	waiting map[string][]chan struct{}
	turns   []string
}

func newSlots(total int) *slots {
	return &slots{total: total, most: max(total-max(total/4, 1), 1), taken: map[string]int{}, waiting: map[string][]chan struct{}{}}
}

// acquire waits for a slot. Namespace is empty for a program with a single user, which may have all slots.
func (s *slots) acquire(ctx context.Context, namespace string) error {
	s.mu.Lock()
	if s.isFree(namespace) {
		s.take(namespace)
		s.mu.Unlock()
		return nil
	}
	granted := make(chan struct{})
	if len(s.waiting[namespace]) == 0 {
		s.turns = append(s.turns, namespace)
	}
	s.waiting[namespace] = append(s.waiting[namespace], granted)
	s.mu.Unlock()
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-granted: // at the same time
		s.free(namespace)
	default:
		s.forget(namespace, granted)
	}
	return ctx.Err()
}

// release ends the use of a slot.
func (s *slots) release(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free(namespace)
}

func (s *slots) isFree(namespace string) bool {
	return s.inUse < s.total && (namespace == "" || s.taken[namespace] < s.most)
}

func (s *slots) take(namespace string) {
	s.inUse++
	s.taken[namespace]++
}

// free ends the use of a slot, and gives it to the next namespace that may have it.
func (s *slots) free(namespace string) {
	s.inUse--
	if s.taken[namespace]--; s.taken[namespace] == 0 {
		delete(s.taken, namespace)
	}
	next := slices.IndexFunc(s.turns, s.isFree)
	if next < 0 {
		return
	}
	of := s.turns[next]
	granted := s.waiting[of][0]
	s.forget(of, granted)
	if i := slices.Index(s.turns, of); i >= 0 { // it has more calls: the others come first
		s.turns = append(slices.Delete(s.turns, i, i+1), of)
	}
	s.take(of)
	close(granted)
}

// forget removes a call that waits.
func (s *slots) forget(namespace string, granted chan struct{}) {
	left := slices.DeleteFunc(s.waiting[namespace], func(c chan struct{}) bool { return c == granted })
	if s.waiting[namespace] = left; len(left) > 0 {
		return
	}
	delete(s.waiting, namespace)
	s.turns = slices.DeleteFunc(s.turns, func(other string) bool { return other == namespace })
}
