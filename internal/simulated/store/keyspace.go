package store

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Limits of the history for watches and paged lists: number of changes, bytes of values, and age. They are our choice;
// a client whose revision is older lists again.
const (
	historyEvents = 1024
	historyBytes  = 128 << 10
	historyAge    = time.Minute
)

// errRemoved is returned for requests to a removed keyspace.
var errRemoved = errors.New("the cluster was removed")

// Keyspace holds the keys of one cluster, with the semantics of etcd on which the storage layer of k8s.io/apiserver
// relies. Stored values and events are immutable.
type Keyspace struct {
	name string
	now  func() time.Time
	// touched is called after each change, without the lock.
	touched func(key string, deleted bool)

	mu sync.Mutex
	// rev is the revision of the last change; history contains the changes after compacted.
	rev, compacted int64
	keys           []string // sorted
	values         map[string]*mvccpb.KeyValue
	history        []change
	historySize    int
	dropped        droppedHistory
	watches        map[*watch]struct{}
	// size is the total size of the values in bytes, shared the total size in all keyspaces of the namespace, and room
	// the usage of all keyspaces.
	size   int64
	shared *atomic.Int64
	usage  *usage
	// leased is the number of keys with a lease.
	leased  int
	removed bool
}

// change is an event with its time.
type change struct {
	*clientv3.Event
	at time.Time
}

func newKeyspace(name, namespace string, now func() time.Time, all *usage) *Keyspace {
	return &Keyspace{
		name: name, now: now, usage: all, shared: all.forNamespace(namespace), rev: 1, compacted: 1, dropped: droppedHistory{upTo: 1}, touched: func(string, bool) {},
		values: map[string]*mvccpb.KeyValue{}, watches: map[*watch]struct{}{},
	}
}

// Name returns the name of the keyspace.
func (k *Keyspace) Name() string { return k.name }

// Get returns a value and its revision, or nil and 0 if it does not exist.
func (k *Keyspace) Get(key string) (value []byte, revision int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kv := k.values[key]; kv != nil {
		return kv.Value, kv.ModRevision
	}
	return nil, 0
}

// Put writes a value unconditionally. The notes of package simulated are written with it.
func (k *Keyspace) Put(key string, value []byte) error {
	for {
		_, revision := k.Get(key)
		if ok, _, _, err := k.put(key, value, revision, 0); ok || err != nil {
			return err
		}
	}
}

// Delete removes a key, if it exists.
func (k *Keyspace) Delete(key string) error {
	for {
		_, revision := k.Get(key)
		if revision == 0 {
			return nil
		}
		if ok, _, _, err := k.remove(key, revision); ok || err != nil {
			return err
		}
	}
}

// Keys returns the keys that begin with prefix, sorted.
func (k *Keyspace) Keys(prefix string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	from, to := k.span(prefix, clientv3.GetPrefixRangeEnd(prefix))
	return slices.Clone(k.keys[from:to])
}

// put writes a value if the key has the expected revision (0: the key does not exist). Otherwise it returns the current
// value.
func (k *Keyspace) put(key string, value []byte, expected, lease int64) (ok bool, current *mvccpb.KeyValue, rev int64, err error) {
	k.mu.Lock()
	if k.removed {
		k.mu.Unlock()
		return false, nil, 0, errRemoved
	}
	previous := k.values[key]
	if revisionOf(previous) != expected {
		defer k.mu.Unlock()
		return false, previous, k.rev, nil
	}
	if err := k.checkLimits(previous, value); err != nil {
		k.mu.Unlock()
		return false, nil, 0, err
	}
	k.rev++
	kv := &mvccpb.KeyValue{Key: []byte(key), Value: value, CreateRevision: k.rev, ModRevision: k.rev, Version: 1, Lease: lease}
	if previous != nil {
		kv.CreateRevision, kv.Version = previous.CreateRevision, previous.Version+1
	}
	k.set(key, previous, kv)
	k.record(&clientv3.Event{Type: clientv3.EventTypePut, Kv: kv, PrevKv: previous})
	rev = k.rev
	k.mu.Unlock()
	k.touched(key, false)
	return true, kv, rev, nil
}

// remove removes a key if it has the expected revision. Otherwise it returns the current value.
func (k *Keyspace) remove(key string, expected int64) (ok bool, current *mvccpb.KeyValue, rev int64, err error) {
	k.mu.Lock()
	if k.removed {
		k.mu.Unlock()
		return false, nil, 0, errRemoved
	}
	previous := k.values[key]
	if revisionOf(previous) != expected {
		defer k.mu.Unlock()
		return false, previous, k.rev, nil
	}
	if previous != nil {
		k.drop(previous)
	}
	rev = k.rev
	k.mu.Unlock()
	k.touched(key, true)
	return true, previous, rev, nil
}

// drop removes an existing value. The lock must be held.
func (k *Keyspace) drop(previous *mvccpb.KeyValue) {
	key := string(previous.Key)
	k.rev++
	k.set(key, previous, nil)
	k.record(&clientv3.Event{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: previous.Key, ModRevision: k.rev}, PrevKv: previous})
}

// set replaces the previous value with the next one (nil: none). The lock must be held.
func (k *Keyspace) set(key string, previous, next *mvccpb.KeyValue) {
	i, found := slices.BinarySearch(k.keys, key)
	switch {
	case next == nil && found:
		k.keys = slices.Delete(k.keys, i, i+1)
		delete(k.values, key)
	case next != nil:
		if !found {
			k.keys = slices.Insert(k.keys, i, key)
		}
		k.values[key] = next
	}
	if previous != nil {
		k.resized(-int64(len(previous.Value)))
	}
	if next != nil {
		k.resized(int64(len(next.Value)))
	}
	if previous != nil && previous.Lease != 0 {
		k.leased--
	}
	if next != nil && next.Lease != 0 {
		k.leased++
	}
}

// record appends an event to the history and sends it to the watches. The lock must be held.
func (k *Keyspace) record(e *clientv3.Event) {
	k.history = append(k.history, change{e, k.now()})
	k.historySize += len(e.Kv.Value)
	for w := range k.watches {
		w.enqueue(e)
	}
	forget := 0
	for size := k.historySize; len(k.history)-forget > historyEvents || size > historyBytes && len(k.history)-forget > 1; forget++ {
		size -= len(k.history[forget].Kv.Value)
	}
	k.dropHistory(forget)
}

// dropHistory drops the oldest changes. The lock must be held.
func (k *Keyspace) dropHistory(n int) {
	if n == 0 {
		return
	}
	for _, c := range k.history[:n] {
		k.historySize -= len(c.Kv.Value)
		k.compacted = c.Kv.ModRevision
		k.dropped.add(string(c.Kv.Key), c.Kv.ModRevision)
	}
	k.history = append([]change(nil), k.history[n:]...)
}

// read returns the values from start until end (empty: start alone) at a revision (0: current). The etcd client of
// [NewClient] calls it for gets and lists.
func (k *Keyspace) read(start, end string, limit, revision int64) (kvs []*mvccpb.KeyValue, count, rev int64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.removed:
		return nil, 0, 0, errRemoved
	case revision > k.rev:
		return nil, 0, 0, rpctypes.ErrFutureRev
	case revision != 0 && revision < k.compacted:
		return nil, 0, 0, rpctypes.ErrCompacted
	}
	from, to := k.span(start, end)
	for _, key := range k.keys[from:to] {
		kvs = append(kvs, k.values[key])
	}
	if revision != 0 && revision < k.rev {
		kvs = k.undo(kvs, start, end, revision)
	}
	count = int64(len(kvs))
	if limit > 0 && count > limit {
		kvs = kvs[:limit]
	}
	return kvs, count, k.rev, nil
}

// span returns the index range of the keys from start until end (empty: start alone). The lock must be held.
func (k *Keyspace) span(start, end string) (from, to int) {
	from, found := slices.BinarySearch(k.keys, start)
	if end != "" {
		to, _ = slices.BinarySearch(k.keys, end)
		return from, max(from, to)
	}
	if found {
		return from, from + 1
	}
	return from, from
}

// undo reverts the changes after the revision. The lock must be held.
func (k *Keyspace) undo(kvs []*mvccpb.KeyValue, start, end string, revision int64) []*mvccpb.KeyValue {
	at := map[string]*mvccpb.KeyValue{}
	for _, kv := range kvs {
		at[string(kv.Key)] = kv
	}
	for i := len(k.history) - 1; i >= 0 && k.history[i].Kv.ModRevision > revision; i-- {
		if key := string(k.history[i].Kv.Key); isInRange(key, start, end) {
			at[key] = k.history[i].PrevKv
		}
	}
	kvs = nil
	for _, kv := range at {
		if kv != nil {
			kvs = append(kvs, kv)
		}
	}
	slices.SortFunc(kvs, func(a, b *mvccpb.KeyValue) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return kvs
}

// expire removes expired keys and drops old history. [Store.Run] calls it periodically.
func (k *Keyspace) expire() {
	k.mu.Lock()
	now := k.now()
	var ended []string
	if k.leased > 0 {
		for _, key := range slices.Clone(k.keys) {
			if kv := k.values[key]; kv.Lease != 0 && now.Unix() >= kv.Lease {
				k.drop(kv)
				ended = append(ended, key)
			}
		}
	}
	old := 0
	for old < len(k.history) && now.Sub(k.history[old].at) > historyAge {
		old++
	}
	k.dropHistory(old)
	k.mu.Unlock()
	for _, key := range ended {
		k.touched(key, true)
	}
}

// end makes all later calls fail and ends the watches.
func (k *Keyspace) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.removed = true
	for w := range k.watches {
		w.end()
	}
	k.resized(-k.size)
	k.keys, k.values, k.history = nil, map[string]*mvccpb.KeyValue{}, nil
}

func isInRange(key, start, end string) bool {
	if end == "" {
		return key == start
	}
	return key >= start && key < end
}

func revisionOf(kv *mvccpb.KeyValue) int64 {
	if kv == nil {
		return 0
	}
	return kv.ModRevision
}
