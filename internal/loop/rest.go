package loop

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rests keeps passes over the same object apart (FG-03). An object that comes into being has several events in the time of
// one pass: its own writes, and those of everything that belongs to it. The first makes a pass at once, those that follow
// soon make one together. The zero value keeps nothing apart.
type rests struct {
	// least is the time between the beginnings of two passes over an object.
	least time.Duration

	mu    sync.Mutex
	began map[client.ObjectKey]time.Time
	// crowd is the number of objects at which to forget those that have rested.
	crowd int
}

// left returns how long an object still has to rest; zero: a pass begins now.
func (r *rests) left(key client.ObjectKey, now time.Time) time.Duration {
	if r.least <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := r.least - now.Sub(r.began[key]); left > 0 {
		return left
	}
	if r.began == nil {
		r.began, r.crowd = map[client.ObjectKey]time.Time{}, fewest
	}
	if len(r.began) >= r.crowd {
		for k, began := range r.began {
			if now.Sub(began) >= r.least {
				delete(r.began, k)
			}
		}
		r.crowd = max(fewest, 2*len(r.began))
	}
	r.began[key] = now
	return 0
}

// failed lets the next pass over an object begin at once. The work queue spaces the tries of a failed pass further and
// further apart and forgets that when a pass succeeds, and a pass that only rests succeeds.
func (r *rests) failed(key client.ObjectKey) {
	r.mu.Lock()
	delete(r.began, key)
	r.mu.Unlock()
}
