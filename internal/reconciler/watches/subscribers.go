package watches

import (
	"maps"
	"slices"
	"sync"
)

// Subscribers calls functions with the names of objects that changed outside the API. The servers of hosted and
// simulated control planes embed it, and controllers subscribe to enqueue the objects. The zero value is ready to use.
type Subscribers struct {
	mu    sync.Mutex
	next  int
	funcs map[int]func(name string)
}

// Subscribe calls changed with the name of each changed object until cancel is called. changed must not block.
func (s *Subscribers) Subscribe(changed func(name string)) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.funcs == nil {
		s.funcs = map[int]func(string){}
	}
	id := s.next
	s.next++
	s.funcs[id] = changed
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.funcs, id)
	}
}

// Notify calls the subscribed functions. The supervisor of hosted control planes, the watch of their Pods and the
// server of simulated control planes call it.
func (s *Subscribers) Notify(name string) {
	s.mu.Lock()
	funcs := slices.Collect(maps.Values(s.funcs))
	s.mu.Unlock()
	for _, changed := range funcs {
		changed(name)
	}
}
