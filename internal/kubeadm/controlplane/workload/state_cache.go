package workload

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// StateCache caches the latest state of workload clusters, by the UID of the control plane, because they are read less
// often than the KubeadmControlPlane controller reconciles. It holds the [State] of this package, or the state of
// package addons. The zero value is ready to use.
type StateCache[T any] struct {
	mu   sync.Mutex
	last map[types.UID]T
}

// rememberedPlanes limits the size of the cache. An evicted entry costs one additional read.
const rememberedPlanes = 10000

// Get returns the cached state. The KubeadmControlPlane controller calls it at the start of each reconciliation.
func (m *StateCache[T]) Get(plane types.UID) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last[plane]
}

// Set caches a state. The KubeadmControlPlane controller calls it after each read.
func (m *StateCache[T]) Set(plane types.UID, s T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil || len(m.last) > rememberedPlanes {
		m.last = map[types.UID]T{}
	}
	m.last[plane] = s
}

// Forget removes the cached state. The KubeadmControlPlane controller calls it after it has changed the objects of
// kubeadm.
func (m *StateCache[T]) Forget(plane types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, plane)
}
