package custody

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/plane/datadir"
)

const (
	given = "given-"
	taken = "taken-"
)

// Book is the records of one data directory. A nil Book has none, and nothing is written with it.
type Book struct {
	dir      string
	instance string
}

// Open returns the records of a data directory, of which this is the instance. It reads nothing yet.
func Open(dir datadir.Dir, instance string) *Book {
	return &Book{dir: dir.Custody(), instance: instance}
}

// Labels returns a book of an instance without a data directory: what it made is its own.
func Labels(instance string) *Book { return &Book{instance: instance} }

// Instance that the data directory is of.
func (b *Book) Instance() string { return b.instance }

// Holdings reads what the records say.
func (b *Book) Holdings() (Holdings, error) {
	g, err := b.read(given)
	if err != nil {
		return Holdings{}, err
	}
	t, err := b.read(taken)
	return NewHoldings(b.instance, g, t), err
}

// Given returns what was given away, by Cluster.
func (b *Book) Given() ([]Record, error) { return b.read(given) }

// Taken returns what was taken from others, by Cluster.
func (b *Book) Taken() ([]Record, error) { return b.read(taken) }

// read reads all records of a kind. One that is deleted meanwhile is left out.
func (b *Book) read(prefix string) ([]Record, error) {
	if b.dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(b.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the records of what was handed over: %w", err)
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
			return nil, fmt.Errorf("read %s, which says what was handed over: %w", path, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func (b *Book) path(prefix, uid string) string { return filepath.Join(b.dir, prefix+uid+".json") }

func (b *Book) write(prefix string, r Record) error {
	if err := r.check(); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(b.path(prefix, r.UID), append(data, '\n'), 0o600)
	return err
}

func (b *Book) remove(prefix string, r Record) error {
	if err := r.check(); err != nil {
		return err
	}
	if err := os.Remove(b.path(prefix, r.UID)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Hold keeps records from being written until release is called: what is begun under it counts as begun before them.
func (b *Book) Hold() (release func(), err error) { return b.lock(unix.F_RDLCK) }

func (b *Book) lock(kind int16) (release func(), err error) {
	if b == nil || b.dir == "" {
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
	// Another process holds it for as long as it takes to write a few files, and not longer than it lives.
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLKW, &unix.Flock_t{Type: kind}); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}

// alone does something that no one else does meanwhile.
func (b *Book) alone(do func() error) error {
	release, err := b.lock(unix.F_WRLCK)
	if err != nil {
		return err
	}
	defer release()
	return do()
}

// Give records that something is being given away: from now on it is not this instance's any more.
func (b *Book) Give(r Record) error {
	r.Moving = true
	return b.alone(func() error { return b.write(given, r) })
}

// Keep takes back that something is being given away.
func (b *Book) Keep(r Record) error {
	return b.alone(func() error { return b.remove(given, r) })
}

// Take records that something is this instance's from now on.
func (b *Book) Take(r Record) error {
	if len(r.Items) == 0 { // folders are where they are
		return nil
	}
	r.Moving = false
	return b.alone(func() error { return b.write(taken, r) })
}

// Leave takes back that something was taken.
func (b *Book) Leave(r Record) error {
	return b.alone(func() error { return b.remove(taken, r) })
}

// Settle records that the move of what is being given is over: that it was taken from another one before counts no more.
func (b *Book) Settle(r Record) error {
	return b.alone(func() error {
		before, err := b.read(taken)
		if err != nil {
			return err
		}
		for _, t := range before {
			if left := t.without(r.Items); len(left.Items) < len(t.Items) {
				if err := b.rewrite(taken, left); err != nil {
					return err
				}
			}
		}
		r.Moving, r.Planes, r.Balancers = false, nil, nil
		return b.rewrite(given, r)
	})
}

// rewrite writes what is left of a record, and removes one that says nothing any more.
func (b *Book) rewrite(prefix string, r Record) error {
	if len(r.Items) == 0 && !r.Moving {
		return b.remove(prefix, r)
	}
	return b.write(prefix, r)
}

// Prune forgets what is gone from the host.
func (b *Book) Prune(exists func(Item) bool) error {
	if b.dir == "" {
		return nil
	}
	return b.alone(func() error {
		for _, prefix := range []string{given, taken} {
			all, err := b.read(prefix)
			if err != nil {
				return err
			}
			for _, r := range all {
				left := r
				left.Items = slices.DeleteFunc(slices.Clone(r.Items), func(i Item) bool { return !exists(i) })
				if len(left.Items) == len(r.Items) || r.Moving {
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
