package hosttransfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	outgoingPrefix = "given-"
	incomingPrefix = "taken-"
)

// Store stores the ownership records of one data directory. `slipway move` writes them; the container backend and
// package supervisor read them. A nil Store has no records.
type Store struct {
	dir      string
	instance string
}

// Open returns the records of a data directory with this instance ID. It does not read anything yet. The manager,
// `slipway move` and commands for local containers call it.
func Open(dir datadir.Dir, instance string) *Store {
	return &Store{dir: dir.TransferRecords(), instance: instance}
}

// LabelsOnly returns a Store for an instance without a data directory. Ownership then follows from labels alone. The
// container backend calls it if it has no records.
func LabelsOnly(instance string) *Store { return &Store{instance: instance} }

// Instance returns the instance ID of the data directory.
func (b *Store) Instance() string {
	if b == nil {
		return ""
	}
	return b.instance
}

// isEmpty reports whether there is no directory with records.
func (b *Store) isEmpty() bool { return b == nil || b.dir == "" }

// Ownership reads all records. The container backend and package supervisor call it.
func (b *Store) Ownership() (Ownership, error) {
	g, err := b.read(outgoingPrefix)
	if err != nil {
		return Ownership{}, err
	}
	t, err := b.read(incomingPrefix)
	return newOwnership(b.Instance(), g, t), err
}

// Outgoing returns the records of resources that were transferred to other data directories, by Cluster. `slipway move`
// calls it.
func (b *Store) Outgoing() ([]Record, error) { return b.read(outgoingPrefix) }

// read reads all records with the prefix. It ignores records that are deleted during the read.
func (b *Store) read(prefix string) ([]Record, error) {
	if b.isEmpty() {
		return nil, nil
	}
	entries, err := os.ReadDir(b.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the transfer records: %w", err)
	}
	var out []Record
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		path := filepath.Join(b.dir, e.Name())
		data, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		var r Record
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if err != nil {
			return nil, fmt.Errorf("read transfer record %s: %w", path, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func (b *Store) path(prefix, uid string) string { return filepath.Join(b.dir, prefix+uid+".json") }

func (b *Store) write(prefix string, r Record) error {
	if err := r.check(); err != nil {
		return err
	}
	return datadir.WriteJSON(b.path(prefix, r.UID), r)
}

func (b *Store) remove(prefix string, r Record) error {
	if err := r.check(); err != nil {
		return err
	}
	if err := os.Remove(b.path(prefix, r.UID)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// BlockTransfers prevents records from being written until release is called, so that an operation that started before
// a transfer is complete when the transfer starts. Package supervisor calls it.
func (b *Store) BlockTransfers() (release func(), err error) { return b.lock(unix.F_RDLCK) }

func (b *Store) lock(kind int16) (release func(), err error) {
	if b.isEmpty() {
		return func() {}, nil
	}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(b.dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	// Another process only holds the lock while it writes a few files, and releases it when it exits.
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLKW, &unix.Flock_t{Type: kind}); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}

// alone calls do with an exclusive lock.
func (b *Store) alone(do func() error) error {
	if b.isEmpty() {
		return fault.New(fault.Bug, "NoTransferRecords", "an instance without a data directory cannot record transfers")
	}
	release, err := b.lock(unix.F_WRLCK)
	if err != nil {
		return err
	}
	defer release()
	return do()
}

// BeginTransfer records the start of a transfer to another data directory. From now on, this instance no longer owns
// the resources. `slipway move` calls it before it transfers any resource.
func (b *Store) BeginTransfer(r Record) error {
	r.InProgress = true
	return b.alone(func() error { return b.write(outgoingPrefix, r) })
}

// CancelTransfer cancels a transfer to another data directory. It is the last step of a rollback, when the resources
// are back. `slipway move` calls it.
func (b *Store) CancelTransfer(r Record) error {
	return b.alone(func() error { return b.remove(outgoingPrefix, r) })
}

// RecordIncoming records that this instance owns the resources from now on. `slipway move` calls it for the target
// after the resources were transferred.
func (b *Store) RecordIncoming(r Record) error {
	if len(r.Items) == 0 { // directories need no record, because their location identifies the owner
		return nil
	}
	r.InProgress = false
	return b.alone(func() error { return b.write(incomingPrefix, r) })
}

// CancelIncoming cancels a transfer from another data directory. It is the first step of a rollback, at the target.
// `slipway move` calls it.
func (b *Store) CancelIncoming(r Record) error {
	return b.alone(func() error { return b.remove(incomingPrefix, r) })
}

// FinishTransfer records the end of a transfer to another data directory. It also removes the resources from records of
// earlier transfers from other data directories. `slipway move` calls it when the move can no longer be rolled back.
func (b *Store) FinishTransfer(r Record) error {
	return b.alone(func() error {
		before, err := b.read(incomingPrefix)
		if err != nil {
			return err
		}
		for _, t := range before {
			if left := t.without(r.Items); len(left.Items) < len(t.Items) {
				if err := b.rewrite(incomingPrefix, left); err != nil {
					return err
				}
			}
		}
		r.InProgress, r.Planes, r.Balancers = false, nil, nil
		return b.rewrite(outgoingPrefix, r)
	})
}

// rewrite writes the remaining content of a record, and deletes it if it is empty.
func (b *Store) rewrite(prefix string, r Record) error {
	if len(r.Items) == 0 && !r.InProgress {
		return b.remove(prefix, r)
	}
	return b.write(prefix, r)
}

// Prune removes resources that no longer exist on the host from the records. The container backend calls it.
func (b *Store) Prune(exists func(Item) bool) error {
	if b.isEmpty() {
		return nil
	}
	return b.alone(func() error {
		for _, prefix := range []string{outgoingPrefix, incomingPrefix} {
			all, err := b.read(prefix)
			if err != nil {
				return err
			}
			for _, r := range all {
				left := r
				left.Items = slices.DeleteFunc(slices.Clone(r.Items), func(i Item) bool { return !exists(i) })
				if len(left.Items) == len(r.Items) || r.InProgress {
					continue
				}
				if err := b.rewrite(prefix, left); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
