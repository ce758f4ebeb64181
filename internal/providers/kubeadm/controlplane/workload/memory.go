package workload

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Memory remembers what was read of workload clusters last, by control plane. The zero value is ready to use.
type Memory[T any] struct {
	mu   sync.Mutex
	last map[types.UID]T
}

// rememberedPlanes bounds the memory; forgetting costs one reading.
const rememberedPlanes = 10000

// Get returns what was read last.
func (m *Memory[T]) Get(plane types.UID) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last[plane]
}

// Set remembers what was read.
func (m *Memory[T]) Set(plane types.UID, s T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil || len(m.last) > rememberedPlanes {
		m.last = map[types.UID]T{}
	}
	m.last[plane] = s
}

// Forget makes what was read last the zero value.
func (m *Memory[T]) Forget(plane types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, plane)
}
