package store

import (
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Limits of what is kept in memory, and of what the users of the simulated clusters can make this process keep.
type Limits struct {
	// Objects of one cluster. 0: no limit.
	Objects int
	// ClusterBytes, NamespaceBytes and Bytes are the values of one cluster, of all clusters of one namespace, and of all together.
	// 0: the default.
	ClusterBytes, NamespaceBytes, Bytes int64
}

// Values that hold where nothing else is said.
const (
	defaultClusterBytes = 64 << 20
	defaultBytes        = 1 << 30
	// maxValue is the size of one object, as in etcd.
	maxValue = 1536 << 10
)

// partOfMemory is what part of the memory of the process values may take: an API server decodes them, and controllers cache them. What is
// stored is read again after a crash, so that values that end the process would end it again.
const partOfMemory = 4

// Within returns limits that keep all values within a part of the memory of the process, in bytes.
func Within(memory int64) Limits { return Limits{Bytes: min(defaultBytes, memory/partOfMemory)} }

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	if l.NamespaceBytes == 0 { // something is left for the others
		l.NamespaceBytes = l.Bytes / 4 * 3
	}
	if l.ClusterBytes == 0 {
		l.ClusterBytes = min(defaultClusterBytes, l.NamespaceBytes)
	}
	return l
}

// room is what all keyspaces of a store share.
type room struct {
	limits Limits
	used   atomic.Int64

	mu         sync.Mutex
	namespaces map[string]*atomic.Int64
}

// of returns what the keyspaces of a namespace use.
func (r *room) of(namespace string) *atomic.Int64 {
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

// refusal returns why a value may not be put in the place of the previous one, as etcd would say it. What makes a value
// smaller is always allowed. The lock of the keyspace is held.
func (k *Keyspace) refusal(previous *mvccpb.KeyValue, value []byte) error {
	more := int64(len(value))
	if previous != nil {
		more -= int64(len(previous.Value))
	}
	l := k.room.limits
	switch {
	case len(value) > maxValue:
		return rpctypes.ErrRequestTooLarge
	case previous == nil && l.Objects > 0 && len(k.values) >= l.Objects,
		more > 0 && (k.size+more > l.ClusterBytes || k.shared.Load()+more > l.NamespaceBytes || k.room.used.Load()+more > l.Bytes):
		return rpctypes.ErrNoSpace
	}
	return nil
}

// resized notes that values came or went. The lock is held, or the keyspace is not shared yet.
func (k *Keyspace) resized(by int64) {
	k.size += by
	k.shared.Add(by)
	k.room.used.Add(by)
}
