package loop

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rests keeps passes over the same object apart (FG-03). An object that comes into being has several events in the time of
// one pass: its own writes, and those of everything that belongs to it. The first makes a pass at once, those that follow
// soon make one together. Where the API server is busy there is more time between the events, and as much more between the
// passes. The zero value keeps nothing apart.
type rests struct {
	// least is the time between the beginnings of two passes over an object, where the API server is not busy.
	least time.Duration

	mu    sync.Mutex
	began map[client.ObjectKey]time.Time
	// crowd is the number of objects at which to forget those that have rested.
	crowd int
}

// writesApart is how many times as long as a write takes lies between two passes at least, and longest how many times the
// least time at most.
const writesApart, longest = 4, 5

// between is the time between two passes where a write takes so long.
func (r *rests) between(write time.Duration) time.Duration {
	return min(max(r.least, writesApart*write), longest*r.least)
}

// left returns how long an object still has to rest where a write takes so long; zero: a pass begins now.
func (r *rests) left(key client.ObjectKey, now time.Time, write time.Duration) time.Duration {
	if r.least <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	apart := r.between(write)
	if left := apart - now.Sub(r.began[key]); left > 0 {
		return left
	}
	if r.began == nil {
		r.began, r.crowd = map[client.ObjectKey]time.Time{}, fewest
	}
	if len(r.began) >= r.crowd {
		for k, began := range r.began {
			if now.Sub(began) >= apart {
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
