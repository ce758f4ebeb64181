package kube

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Pending remembers names of objects that were created, or deleted, for an owner, until the cache shows it: a controller
// that counts objects in a cache would do the same once more until then. The zero value is ready to use.
type Pending struct {
	mu    sync.Mutex
	names map[types.UID]map[string]time.Time
}

// Add remembers a name for an owner.
func (p *Pending) Add(owner types.UID, name string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names == nil {
		p.names = map[types.UID]map[string]time.Time{}
	}
	if p.names[owner] == nil {
		p.names[owner] = map[string]time.Time{}
	}
	p.names[owner][name] = now
}

// Settle forgets the names that the cache shows by now, and returns the others with when they were added, sorted by
// name.
func (p *Pending) Settle(owner types.UID, shown func(name string) bool) []PendingName {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []PendingName
	for name, since := range p.names[owner] {
		if shown(name) {
			delete(p.names[owner], name)
			continue
		}
		out = append(out, PendingName{Name: name, Since: since})
	}
	if len(out) == 0 {
		delete(p.names, owner)
	}
	slices.SortFunc(out, func(a, b PendingName) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// PendingName is one object that the cache does not show yet.
type PendingName struct {
	Name  string
	Since time.Time
}
