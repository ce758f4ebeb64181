package fleet

import (
	"reflect"
	"slices"
	"sync"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/rootcause"
)

// TimeDependent is the interval in which rows are computed again whose health depends on the time. `slipway get
// machines` uses it, too.
const TimeDependent = 30 * time.Second

// isTimed reports whether the row of an object may change without a change of an object: its cause becomes overdue, or a step of
// a rollout stalls.
func isTimed(health Health, cause Cause) bool {
	return health == changing || len(cause.chain.Links) > 0
}

// Key identifies a cluster. Packages mirror and ui and the commands use it as well.
type Key struct{ Namespace, Name string }

// Board has the rows of all clusters of a graph. A row is computed again after [Board.Touch], not for every reader.
// `slipway get clusters` has one, and so has each management cluster of `slipway ui`.
type Board struct {
	graph rootcause.Graph

	mu    sync.Mutex
	dirty map[Key]bool
	rows  map[Key]Cluster
	// sorted are the rows by name; nil after a change.
	sorted  []Cluster
	touched time.Time
	// revision is the revision of the last row that has changed.
	revision uint64
	// refresh allows one refresh at a time.
	refresh sync.Mutex
}

// NewBoard returns a board without rows.
func NewBoard(g rootcause.Graph) *Board {
	return &Board{graph: g, dirty: map[Key]bool{}, rows: map[Key]Cluster{}}
}

// Touch marks the row of a cluster as stale. It does not compute anything.
func (b *Board) Touch(key Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dirty[key] = true
}

// Refresh computes the stale rows, and returns the clusters whose rows have changed.
func (b *Board) Refresh(now time.Time) []Key {
	b.refresh.Lock()
	defer b.refresh.Unlock()
	var changed []Key
	for _, key := range b.takeDirty(now) {
		row, exists := b.compute(key, now)
		if b.set(key, row, exists) {
			changed = append(changed, key)
		}
	}
	return changed
}

// takeDirty returns the stale rows, and now and then the rows whose health depends on the time.
func (b *Board) takeDirty(now time.Time) []Key {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.touched) >= TimeDependent {
		b.touched = now
		for key, row := range b.rows {
			if isTimed(row.Health, row.Cause) {
				b.dirty[key] = true
			}
		}
	}
	out := make([]Key, 0, len(b.dirty))
	for key := range b.dirty {
		out = append(out, key)
	}
	clear(b.dirty)
	return out
}

func (b *Board) compute(key Key, now time.Time) (Cluster, bool) {
	u, ok := b.graph.Get(clusterRef(key.Namespace, key.Name))
	if !ok {
		return Cluster{}, false
	}
	c, ok := rootcause.Decode[clusterv1.Cluster](u)
	if !ok {
		return Cluster{Namespace: key.Namespace, Name: key.Name, Health: Problem, Available: "Unknown",
			Cause: Cause{Reason: "The Cluster has a field of an unknown type; update Slipway"}}, true
	}
	return newCluster(b.graph, c, now), true
}

// set stores a row and reports whether it differs from the previous one.
func (b *Board) set(key Key, row Cluster, exists bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, existed := b.rows[key]
	if exists == existed && sameRow(before, row) {
		return false
	}
	b.sorted = nil
	if !exists {
		delete(b.rows, key)
		return true
	}
	b.revision++
	row.Revision = b.revision
	b.rows[key] = row
	return true
}

// Clusters returns the rows by namespace and name. The slice must not be changed.
func (b *Board) Clusters() []Cluster {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sorted == nil {
		b.sorted = make([]Cluster, 0, len(b.rows))
		for _, row := range b.rows {
			b.sorted = append(b.sorted, row)
		}
		slices.SortFunc(b.sorted, CompareClusters)
	}
	return b.sorted
}

// Cluster returns the row of a cluster.
func (b *Board) Cluster(key Key) (Cluster, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	row, ok := b.rows[key]
	return row, ok
}

// sameRow compares two rows without the times at which they were computed.
func sameRow(a, b Cluster) bool {
	a.chain.Time, b.chain.Time = time.Time{}, time.Time{}
	a.Revision, b.Revision = 0, 0
	return reflect.DeepEqual(a, b)
}
