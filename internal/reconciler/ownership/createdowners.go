package ownership

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// begunFor is how long a created owner counts as new. Its first reconciliations are complete by then.
const begunFor = 10 * time.Minute

// CreatedOwners records the owners that this process has created: the MachineDeployment controller adds its
// MachineSets, and the MachineSet controller then creates Machines without reading the workload cluster first. Such
// owners cannot have been restored from a backup, and they cannot have dependents elsewhere. Owners that are not
// recorded, for example after a restart, get no special treatment. A nil *CreatedOwners records nothing. Package
// manager creates one for both controllers.
type CreatedOwners struct {
	mu     sync.Mutex
	owners map[types.UID]time.Time
}

// Add records an owner and removes outdated records.
func (b *CreatedOwners) Add(owner types.UID, now time.Time) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.owners == nil {
		b.owners = map[types.UID]time.Time{}
	}
	for uid, since := range b.owners {
		if now.Sub(since) > begunFor {
			delete(b.owners, uid)
		}
	}
	b.owners[owner] = now
}

// Has reports whether this process created the owner recently. The MachineSet controller calls it before it requires
// the Nodes of the workload cluster.
func (b *CreatedOwners) Has(owner types.UID, now time.Time) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	since, ok := b.owners[owner]
	return ok && now.Sub(since) <= begunFor
}
