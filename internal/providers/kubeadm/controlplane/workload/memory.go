package workload

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Memory remembers what was read of workload clusters last, by control plane. The zero value is ready to use.
type Memory struct {
	mu   sync.Mutex
	last map[types.UID]State
}

// rememberedPlanes bounds the memory; forgetting costs one reading.
const rememberedPlanes = 10000

// Get returns what was read last.
func (m *Memory) Get(plane types.UID) State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last[plane]
}

// Set remembers what was read.
func (m *Memory) Set(plane types.UID, s State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil || len(m.last) > rememberedPlanes {
		m.last = map[types.UID]State{}
	}
	m.last[plane] = s
}
