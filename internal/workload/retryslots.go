package workload

import (
	"sync"
	"time"
)

// maxSpread limits how far a slot may be behind the earliest possible time. A caller that retries early because of
// another event takes another slot; without a limit slots would drift away from all callers.
const maxSpread = time.Second

// retrySlots assigns retry times, one interval apart, to callers that the [rateLimitedTransport] of a cluster rejects.
// If all callers retried as soon as there is capacity for one, all but the first would be rejected again.
type retrySlots struct {
	// Interval is the time after which there is capacity for one more caller.
	Interval time.Duration

	mu   sync.Mutex
	last time.Time
}

// next returns how long to wait for a slot if there is no capacity for the given delay.
func (s *retrySlots) next(now time.Time, delay time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := now.Add(delay)
	if next := s.last.Add(s.Interval); next.After(slot) && next.Sub(slot) < maxSpread {
		slot = next
	}
	s.last = slot
	return slot.Sub(now)
}
