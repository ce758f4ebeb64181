package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
)

const (
	suffix = ".state"
	// damaged is appended to the name of a file that cannot be read. The file remains for inspection.
	damaged = ".damaged"
	// interval is the minimum time between two writes of a file.
	interval = 300 * time.Millisecond
	// tidyInterval is the interval of checks for expired keys.
	tidyInterval = time.Minute
	// restartRevisionGap is added to the revision at a restart, so that the revision of a lost change is never reused.
	restartRevisionGap = 1 << 20
)

// Store is a folder of keyspaces. The server of simulated clusters opens one and calls [Store.Run].
type Store struct {
	dir string
	now func() time.Time

	usage *usage

	mu      sync.Mutex
	spaces  map[string]*Keyspace
	dirty   map[*Keyspace]struct{}
	changed chan struct{}
	// saving is locked while files are written or removed.
	saving sync.Mutex
}

// Open returns the store of a folder, which is created with the first file. It removes files that a killed process
// wrote partially.
func Open(dir string, now func() time.Time, limits Limits) *Store {
	if left, err := filepath.Glob(filepath.Join(dir, ".*"+suffix+".*")); err == nil {
		for _, path := range left {
			_ = os.Remove(path) // it only takes up space
		}
	}
	return &Store{
		dir: dir, now: now, usage: &usage{limits: limits.withDefaults()}, spaces: map[string]*Keyspace{}, dirty: map[*Keyspace]struct{}{}, changed: make(chan struct{}, 1),
	}
}

// Exists reports whether a keyspace with the name exists, in memory or as a file. The server of simulated clusters
// calls it for control planes that do not run.
func (s *Store) Exists(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spaces[name] != nil {
		return true
	}
	_, err := os.Stat(s.path(name))
	return err == nil
}

// Keyspace returns the keyspace with a name, loaded from its file or new. Its size counts for a namespace of the
// management cluster. The goroutine that makes a change calls changed after it; changed must not block. A keyspace that
// is already open retains its first callback.
func (s *Store) Keyspace(name, namespace string, changed func(key string, deleted bool)) (*Keyspace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.spaces[name]; k != nil {
		return k, nil
	}
	k := newKeyspace(name, namespace, s.now, s.usage)
	if err := s.load(k); err != nil {
		return nil, err
	}
	k.touched = func(key string, deleted bool) {
		s.markDirty(k)
		changed(key, deleted)
	}
	s.spaces[name] = k
	return k, nil
}

// Remove closes a keyspace and removes its file. It succeeds if the keyspace does not exist.
func (s *Store) Remove(name string) error {
	s.mu.Lock()
	k := s.spaces[name]
	delete(s.spaces, name)
	delete(s.dirty, k)
	s.mu.Unlock()
	if k != nil {
		k.end()
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	if err := os.Remove(s.path(name)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("removing the state of %s: %w", name, err)
	}
	return nil
}

// Run writes changes to files until the context is done, then writes the remaining ones.
func (s *Store) Run(ctx context.Context, trouble func(error)) {
	tidy := time.NewTicker(tidyInterval)
	defer tidy.Stop()
	for {
		select {
		case <-ctx.Done():
			if err := s.Flush(); err != nil {
				trouble(err)
			}
			return
		case <-tidy.C:
			for _, k := range s.all() {
				k.expire()
			}
		case <-s.changed:
			if err := s.Flush(); err != nil {
				trouble(err)
			}
			select { // limit the rate of writes
			case <-ctx.Done():
			case <-time.After(interval):
			}
		}
	}
}

// Flush writes all changes. [Store.Run] retries failed writes.
func (s *Store) Flush() error {
	s.mu.Lock()
	dirty := s.dirty
	s.dirty = map[*Keyspace]struct{}{}
	s.mu.Unlock()
	var first error
	for k := range dirty {
		if err := s.save(k); err != nil {
			s.markDirty(k)
			if first == nil {
				first = err
			}
		}
	}
	return first
}

func (s *Store) all() []*Keyspace {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*Keyspace
	for _, k := range s.spaces {
		out = append(out, k)
	}
	return out
}

// markDirty marks a keyspace for writing.
func (s *Store) markDirty(k *Keyspace) {
	s.mu.Lock()
	s.dirty[k] = struct{}{}
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name+suffix) }

// save writes the file of a keyspace: a checksum, followed by an etcd range response with all keys. Later versions must
// be able to read this form.
func (s *Store) save(k *Keyspace) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	k.mu.Lock()
	if k.removed {
		k.mu.Unlock()
		return nil
	}
	content := etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{Revision: k.rev}}
	for _, key := range k.keys {
		content.Kvs = append(content.Kvs, k.values[key])
	}
	k.mu.Unlock()
	data, err := content.Marshal()
	if err != nil {
		return fmt.Errorf("encoding the state of %s: %w", k.name, err)
	}
	data = append(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(data)), data...)
	if _, err := datadir.WriteFile(s.path(k.name), data, 0o600); err != nil {
		return fmt.Errorf("writing the state of %s: %w", k.name, err)
	}
	return nil
}

// load reads the file of a keyspace, if it exists. A damaged file is renamed, and the cluster starts empty.
func (s *Store) load(k *Keyspace) error {
	data, err := os.ReadFile(s.path(k.name))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the state of %s: %w", k.name, err)
	}
	content, ok := decode(data)
	if !ok {
		k.rev = s.now().UnixMilli() // higher than any previous revision
		k.compacted, k.dropped.upTo = k.rev, k.rev
		return os.Rename(s.path(k.name), s.path(k.name)+damaged)
	}
	k.rev = content.Header.Revision + restartRevisionGap
	k.compacted, k.dropped.upTo = k.rev, k.rev
	for _, kv := range content.Kvs {
		key := string(kv.Key)
		k.keys = append(k.keys, key)
		k.values[key] = kv
		k.resized(int64(len(kv.Value)))
		if kv.Lease != 0 {
			k.leased++
		}
	}
	slices.SortFunc(k.keys, strings.Compare)
	return nil
}

func decode(data []byte) (*etcdserverpb.RangeResponse, bool) {
	if len(data) < 4 || binary.BigEndian.Uint32(data) != crc32.ChecksumIEEE(data[4:]) {
		return nil, false
	}
	content := &etcdserverpb.RangeResponse{}
	if err := content.Unmarshal(data[4:]); err != nil || content.Header == nil {
		return nil, false
	}
	return content, true
}
