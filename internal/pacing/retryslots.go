package pacing

import (
	"sync"
	"time"
)

// maxSpread is how far behind the first possible time a slot may be. A caller that retries early, because of another event,
// gets another slot: without a bound slots would move away from all callers.
const maxSpread = time.Second

// RetrySlots gives callers that a rate limit refuses times to retry at, one interval apart. If all of them retried when there
// is capacity for one, all but the first would be refused again.
type RetrySlots struct {
	// Interval is the time after which there is capacity for one more.
	Interval time.Duration

	mu   sync.Mutex
	last time.Time
}

// Next returns how long to wait for a slot, where there is no capacity for the given delay.
func (s *RetrySlots) Next(now time.Time, delay time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := now.Add(delay)
	if next := s.last.Add(s.Interval); next.After(slot) && next.Sub(slot) < maxSpread {
		slot = next
	}
	s.last = slot
	return slot.Sub(now)
}
