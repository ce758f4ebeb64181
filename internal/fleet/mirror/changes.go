package mirror

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// Changes collects the changes of a [Store] until rows are computed. Of several changes of an object it has the last one. The
// zero value is empty and ready to use. It is safe for concurrent use.
type Changes struct {
	mu      sync.Mutex
	pending map[rootcause.Ref]Change
}

// Add adds a change. The callbacks of `slipway get` and package ui call it.
func (c *Changes) Add(change Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil {
		c.pending = map[rootcause.Ref]Change{}
	}
	c.pending[change.Of] = change
}

// Take returns the changes since the previous call. `slipway get` and package ui call it before they compute rows.
func (c *Changes) Take() []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Collect(maps.Values(c.pending))
	c.pending = nil
	return out
}

// ChangedClusters returns the clusters that changed objects belong to, sorted. The rows of these clusters are computed
// again.
func (s *Store) ChangedClusters(changes []Change) []fleet.Key {
	found := map[fleet.Key]bool{}
	for _, c := range changes {
		for _, key := range s.ClustersOf(c.Object) {
			found[key] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b fleet.Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
