package machines

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Verified records the generation of each owner for which all Machines and clones were completely compared and were
// up to date. The MachineSet and KubeadmControlPlane controllers have one each, so that they read and compare clones
// only when something may have changed. The zero value is ready to use.
type Verified struct {
	mu          sync.Mutex
	generations map[types.UID]int64
}

// verifiedOwners limits the number of records. Losing a record costs one complete comparison.
const verifiedOwners = 10000

// Has reports whether the current generation was verified. The owners' controllers call it in observe.
func (v *Verified) Has(owner client.Object) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.generations[owner.GetUID()] == owner.GetGeneration() && owner.GetGeneration() > 0
}

// Add records the current generation. The owners' controllers call it when [OwnerState.IsUpToDate] reports true.
func (v *Verified) Add(owner client.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.generations == nil || len(v.generations) > verifiedOwners {
		v.generations = map[types.UID]int64{}
	}
	v.generations[owner.GetUID()] = owner.GetGeneration()
}

// Forget makes the next reconciliation compare everything. The owners' controllers call it when they create Machines,
// because a failed creation may leave orphaned clones.
func (v *Verified) Forget(owner client.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.generations, owner.GetUID())
}
