package workload

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// averageSamples is the number of samples in a moving average.
const averageSamples = 16

// smooth returns the moving average after another sample.
func smooth(average, sample time.Duration) time.Duration {
	return average + (sample-average)/averageSamples
}

// latencies are moving averages of the latency of calls to many servers, from which the [slowPool] computes which
// cluster is slow. The zero value is empty.
type latencies[K comparable] struct {
	mu   sync.Mutex
	each map[K]time.Duration // zero: unknown
	// quickest is the latency of the fastest quarter; observed counts the observations since it was computed.
	quickest time.Duration
	observed int
}

// add starts measuring the latency of a server. [Clusters] adds each cluster and forgets it with its Cluster.
func (l *latencies[K]) add(server K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.each == nil {
		l.each = map[K]time.Duration{}
	}
	l.each[server] = 0
}

// forget stops measuring the latency of a server.
func (l *latencies[K]) forget(server K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.each, server)
}

// observe records the duration of a call. Servers that were not added, or were forgotten, are ignored.
func (l *latencies[K]) observe(server K, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, ok := l.each[server]
	if !ok {
		return
	}
	if before > 0 {
		took = smooth(before, took)
	}
	l.each[server] = max(took, 1)
	if l.observed++; l.observed >= len(l.each)/16 { // so that the cost per call does not grow with the number of servers
		l.observed = 0
		known := slices.DeleteFunc(slices.Sorted(maps.Values(l.each)), func(d time.Duration) bool { return d == 0 })
		l.quickest = known[(len(known)-1)/4]
	}
}

// quickestQuarter returns the upper bound of the latencies of the fastest quarter of the servers, or zero if
// nothing is known. The latency budget of [slowPool] follows from it.
func (l *latencies[K]) quickestQuarter() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.quickest
}
