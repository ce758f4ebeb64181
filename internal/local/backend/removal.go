package backend

import (
	"sync"

	"golang.org/x/sync/errgroup"
)

// maxConcurrentRemovals limits the number of concurrent removals. The engine needs seconds to stop the processes of each container.
const maxConcurrentRemovals = 8

// Removal removes host resources concurrently, counts the removed ones and collects the errors.
type Removal struct {
	total  int
	report func(gone, of int)

	mu      sync.Mutex
	removed int
	errs    []error
}

// NewRemoval returns a Removal of the given number of resources. It calls a function with the number of removed
// resources and the total, from one goroutine at a time.
func NewRemoval(of int, tell func(gone, of int)) *Removal { return &Removal{total: of, report: tell} }

// Remove runs all functions and returns when every one has succeeded or failed.
func (r *Removal) Remove(all []func() error) {
	var g errgroup.Group
	g.SetLimit(maxConcurrentRemovals)
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
	r.removed++
	r.report(r.removed, r.total)
}

// Errors returns the errors of all failed removals.
func (r *Removal) Errors() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errs
}
