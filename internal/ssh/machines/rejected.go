package machines

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
)

// rejection is bootstrap data that cannot be used until a user changes it.
type rejection struct {
	// Claim and Secret are what the data was for and where it is.
	Claim, Secret string
	Fault         *fault.Fault
	At            time.Time
}

// rejections remembers the rejected bootstrap data of each SSHMachine, so that it is not read and rejected every
// second. act stores them, and observe reads them.
type rejections struct {
	mu   sync.Mutex
	last map[client.ObjectKey]rejection
}

func newRejections() *rejections { return &rejections{last: map[client.ObjectKey]rejection{}} }

// get returns the rejection of the bootstrap data of an SSHMachine. Nil: there is none.
func (r *rejections) get(o *infrav1.SSHMachine) *rejection {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found, ok := r.last[client.ObjectKeyFromObject(o)]; ok && found.Claim == o.Spec.ClaimID {
		return &found
	}
	return nil
}

// put stores a rejection.
func (r *rejections) put(o *infrav1.SSHMachine, found rejection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[client.ObjectKeyFromObject(o)] = found
}

// drop drops the rejection of an SSHMachine.
func (r *rejections) drop(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, key)
}
