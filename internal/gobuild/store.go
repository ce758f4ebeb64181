package gobuild

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// keepUnused is how long the cache keeps what no build has used.
const keepUnused = 14 * 24 * time.Hour

// KeyOf returns the hash of parts. Their number and lengths count, so that no two lists have the same key by moving
// bytes from one part to the next.
func KeyOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Store keeps the result of each step in a file named after the step and the key of what it is made from.
type Store struct {
	Dir      string
	Progress io.Writer // gets a line for each step
}

// Lock waits until no other build uses the folder, and returns how to give it up.
func (s Store) Lock() (func(), error) {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(s.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the cache folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		fmt.Fprintln(s.Progress, "waiting for another build")
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			return nil, fmt.Errorf("locking the cache folder: %w", err)
		}
	}
	return func() { f.Close() }, nil
}

// Step is something to Make: a file from inputs that key stands for.
type Step struct {
	Name, Key string
	// Make writes the file.
	Make func(ctx context.Context, file string) error
}

// Run returns the step's file, made now unless it is there. The file appears whole or not at all.
func (s Store) Run(ctx context.Context, st Step) (string, error) {
	file := filepath.Join(s.Dir, st.Name+"-"+st.Key[:16])
	if _, err := os.Stat(file); err == nil {
		now := time.Now()
		return file, os.Chtimes(file, now, now)
	}
	draft := file + ".draft"
	if err := os.RemoveAll(draft); err != nil {
		return "", fmt.Errorf("%s: %w", st.Name, err)
	}
	defer os.RemoveAll(draft)
	err := s.Timed(st.Name, func() error { return st.Make(ctx, draft) })
	if err != nil {
		return "", fmt.Errorf("%s: %w", st.Name, err)
	}
	return file, os.Rename(draft, file)
}

// Timed runs f and writes a line: what, when it begins, then how many seconds it took or that it failed.
func (s Store) Timed(what string, f func() error) error {
	fmt.Fprintf(s.Progress, "%-32s", what)
	start := time.Now()
	err := f()
	if err != nil {
		fmt.Fprintln(s.Progress, " failed")
		return err
	}
	fmt.Fprintf(s.Progress, " %6.1f s\n", time.Since(start).Seconds())
	return nil
}

// Sweep removes what no build has used for keepUnused. It is best effort: what stays costs space, nothing else.
func (s Store) Sweep(now time.Time) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.Name() != "lock" && now.Sub(info.ModTime()) > keepUnused {
			os.RemoveAll(filepath.Join(s.Dir, e.Name()))
		}
	}
}
