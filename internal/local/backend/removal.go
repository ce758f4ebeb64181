package backend

import (
	"errors"
	"sync"

	"github.com/slipwayhq/slipway/internal/fault"
)

// maxConcurrentRemovals limits the number of concurrent removals. The engine needs seconds to stop the processes of
// each container.
const maxConcurrentRemovals = 8

// Remove removes host resources by calling the functions of each stage concurrently, one stage after the other. The
// container backend calls it to remove all resources of an instance, or those without objects. It calls report with the
// number of removed resources and the total, from one goroutine at a time. It continues after an error and returns all
// errors.
func Remove(stages [][]func() error, report func(gone, of int)) error {
	var mu sync.Mutex
	removed, total, errs := 0, 0, []error(nil)
	for _, stage := range stages {
		total += len(stage)
	}
	for _, stage := range stages {
		var g fault.Group
		g.SetLimit(maxConcurrentRemovals)
		for _, remove := range stage {
			g.Go(func() error {
				err := remove()
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					errs = append(errs, err)
					return nil
				}
				removed++
				report(removed, total)
				return nil
			})
		}
		_ = g.Wait()
	}
	return errors.Join(errs...)
}
