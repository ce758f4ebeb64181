package store

import (
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Limits of what is kept in memory, and of what the users of the simulated clusters can make this process keep.
type Limits struct {
	// Objects of one cluster. 0: no limit.
	Objects int
	// ClusterBytes and Bytes are the values of one cluster, and of all together. 0: no limit.
	ClusterBytes, Bytes int64
}

// Values that hold where nothing else is said.
const (
	defaultClusterBytes = 64 << 20
	defaultBytes        = 1 << 30
	// maxValue is the size of one object, as in etcd.
	maxValue = 1536 << 10
)

func (l Limits) withDefaults() Limits {
	if l.ClusterBytes == 0 {
		l.ClusterBytes = defaultClusterBytes
	}
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	return l
}

// room is what all keyspaces of a store share.
type room struct {
	limits Limits
	used   atomic.Int64
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
		more > 0 && (k.size+more > l.ClusterBytes || k.room.used.Load()+more > l.Bytes):
		return rpctypes.ErrNoSpace
	}
	return nil
}

// resized notes that values came or went. The lock is held, or the keyspace is not shared yet.
func (k *Keyspace) resized(by int64) {
	k.size += by
	k.room.used.Add(by)
}
