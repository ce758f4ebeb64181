package ownership

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// begunFor is for how long an owner that was created counts as one that begins; its first reconciliations are over then.
const begunFor = 10 * time.Minute

// Begun remembers which owners this process has created: those cannot have come back from a backup, and nothing of theirs exists
// elsewhere. What is not remembered, as after a restart, is treated as any other owner. Nil remembers nothing.
type Begun struct {
	mu     sync.Mutex
	owners map[types.UID]time.Time
}

// Add remembers an owner, and forgets those of long ago.
func (b *Begun) Add(owner types.UID, now time.Time) {
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

// Has reports whether this process has created the owner not long ago.
func (b *Begun) Has(owner types.UID, now time.Time) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	since, ok := b.owners[owner]
	return ok && now.Sub(since) <= begunFor
}
