package store

import (
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Limits limit the memory for stored values, including the memory that users of the simulated clusters can consume. The
// server of simulated clusters sets them from its configuration.
type Limits struct {
	// Objects is the maximum number of objects in one cluster. 0: no limit.
	Objects int
	// ClusterBytes, NamespaceBytes and Bytes limit the total size of the values of one cluster, of all clusters of one
	// namespace, and of all clusters. 0: the default.
	ClusterBytes, NamespaceBytes, Bytes int64
}

// Default limits, our choice except for maxValue.
const (
	defaultClusterBytes = 64 << 20
	defaultBytes        = 1 << 30
	// maxValue is the maximum size of one object, as in etcd.
	maxValue = 1536 << 10
)

// partOfMemory is the divisor for the part of the process memory that values may use: the API server decodes them, and
// controllers cache them. Stored values are loaded again after a crash, so values that exhaust the memory would crash
// every restarted process.
const partOfMemory = 4

// LimitsForMemory returns limits that restrict all values to a part of the process memory, in bytes. The server of
// simulated clusters calls it with the memory of the process.
func LimitsForMemory(memory int64) Limits {
	return Limits{Bytes: min(defaultBytes, memory/partOfMemory)}
}

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	if l.NamespaceBytes == 0 { // leave room for other namespaces
		l.NamespaceBytes = l.Bytes / 4 * 3
	}
	if l.ClusterBytes == 0 {
		l.ClusterBytes = min(defaultClusterBytes, l.NamespaceBytes)
	}
	return l
}

// usage tracks the limits and the usage of all keyspaces of a store. Each put and each load of a keyspace updates it.
type usage struct {
	limits Limits
	used   atomic.Int64

	mu         sync.Mutex
	namespaces map[string]*atomic.Int64
}

// forNamespace returns the usage of the keyspaces of a namespace.
func (r *usage) forNamespace(namespace string) *atomic.Int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.namespaces == nil {
		r.namespaces = map[string]*atomic.Int64{}
	}
	if r.namespaces[namespace] == nil {
		r.namespaces[namespace] = &atomic.Int64{}
	}
	return r.namespaces[namespace]
}

// checkLimits returns the etcd error for a value that may not replace the previous one, or nil. Every put calls it. A
// change that makes a value smaller is always allowed. The lock of the keyspace must be held.
func (k *Keyspace) checkLimits(previous *mvccpb.KeyValue, value []byte) error {
	more := int64(len(value))
	if previous != nil {
		more -= int64(len(previous.Value))
	}
	l := k.usage.limits
	switch {
	case len(value) > maxValue:
		return rpctypes.ErrRequestTooLarge
	case previous == nil && l.Objects > 0 && len(k.values) >= l.Objects,
		more > 0 && (k.size+more > l.ClusterBytes || k.shared.Load()+more > l.NamespaceBytes || k.usage.used.Load()+more > l.Bytes):
		return rpctypes.ErrNoSpace
	}
	return nil
}

// resized records a change of the size of the values. The lock must be held unless the keyspace is not shared yet.
func (k *Keyspace) resized(by int64) {
	k.size += by
	k.shared.Add(by)
	k.usage.used.Add(by)
}
