// Package removal removes many things of a host.
//
// Does: some at once, counts what is gone, keeps what went wrong.
//
// Never: knows what is removed.
//
// Read first: Removal.
package removal

import (
	"sync"

	"golang.org/x/sync/errgroup"
)

// atOnce is how many things are removed at a time: an engine ends the processes of each container, which takes seconds.
const atOnce = 8

// Removal is under way.
type Removal struct {
	of   int
	tell func(gone, of int)

	mu   sync.Mutex
	gone int
	errs []error
}

// New starts to count; tell hears how many of how many are gone, from one goroutine at a time.
func New(of int, tell func(gone, of int)) *Removal { return &Removal{of: of, tell: tell} }

// Remove removes all of these, and returns when that is done, or has failed.
func (r *Removal) Remove(all []func() error) {
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, remove := range all {
		g.Go(func() error {
			r.count(remove())
			return nil
		})
	}
	_ = g.Wait()
}

func (r *Removal) count(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.errs = append(r.errs, err)
		return
	}
	r.gone++
	r.tell(r.gone, r.of)
}

// Errors returns what went wrong.
func (r *Removal) Errors() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errs
}
