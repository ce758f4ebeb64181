package remote

import (
	"sync"
	"time"
)

// turns gives those who find no room a time of their own to come back at. If all came back when there is room for the next
// one, each but it would come in vain, again and again.
type turns struct {
	// each is the time that one of them takes.
	each time.Duration

	mu   sync.Mutex
	last time.Time // the last turn that was given
}

// spread is over how long turns are spread. Who comes before its turn, woken by something else, gets another: without a
// bound turns would move away from everybody.
const spread = time.Second

// next returns how long to wait for a turn that is not before there is room, which is in delay.
func (t *turns) next(now time.Time, delay time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := now.Add(delay)
	if after := t.last.Add(t.each); after.After(turn) && after.Sub(turn) < spread {
		turn = after
	}
	t.last = turn
	return turn.Sub(now)
}
