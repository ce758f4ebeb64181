package kube

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Pending records the names of objects that were created or deleted for an owner, until the cache reflects it. The
// controllers that count Machines or MachineSets in a cache (MachineDeployment, MachineSet and KubeadmControlPlane)
// would otherwise repeat the operation. The zero value is ready to use.
type Pending struct {
	mu    sync.Mutex
	names map[types.UID]map[string]time.Time
}

// Add records a name for an owner.
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

// Settle removes the names that the cache reflects, and returns the remaining names with the time at which they were
// added, sorted by name.
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
	slices.SortFunc(out, func(a, b PendingName) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// PendingName is an object whose creation or deletion the cache does not reflect yet.
type PendingName struct {
	Name  string
	Since time.Time
}
