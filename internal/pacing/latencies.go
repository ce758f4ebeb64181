package pacing

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Latencies are moving averages of how long calls to many servers take. The zero value has none.
type Latencies[K comparable] struct {
	mu   sync.Mutex
	each map[K]time.Duration // zero: unknown
	// quickest is the latency of the quickest quarter, computed that many observations ago.
	quickest time.Duration
	observed int
}

// Add begins to measure the latency of a server, until it is forgotten.
func (l *Latencies[K]) Add(server K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.each == nil {
		l.each = map[K]time.Duration{}
	}
	l.each[server] = 0
}

// Forget forgets a server.
func (l *Latencies[K]) Forget(server K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.each, server)
}

// Observe adds how long a call took to the latency of its server; one that was not added, or is forgotten, does not count.
func (l *Latencies[K]) Observe(server K, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, ok := l.each[server]
	if !ok {
		return
	}
	if before > 0 {
		took = Smooth(before, took)
	}
	l.each[server] = max(took, 1)
	if l.observed++; l.observed >= len(l.each)/16 { // so that it costs as little with a thousand servers
		l.observed = 0
		known := slices.DeleteFunc(slices.Sorted(maps.Values(l.each)), func(d time.Duration) bool { return d == 0 })
		l.quickest = known[(len(known)-1)/4]
	}
}

// QuickestQuarter is the latency that the quickest quarter of the servers does not exceed; zero: nothing is known.
func (l *Latencies[K]) QuickestQuarter() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.quickest
}
