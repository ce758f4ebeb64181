package nodeimage

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

// keyOf returns the hash of parts. Their number and lengths count, so that no two lists have the same key by moving
// bytes from one part to the next.
func keyOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// store keeps the result of each step in a file named after the step and the key of what it is made from.
type store struct {
	dir      string
	progress io.Writer
}

// lock waits until no other build uses the folder, and returns how to give it up.
func (s store) lock() (func(), error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the cache folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		fmt.Fprintln(s.progress, "waiting for another build of a node image")
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			return nil, fmt.Errorf("locking the cache folder: %w", err)
		}
	}
	return func() { f.Close() }, nil
}

// step is something to make: a file from inputs that key stands for.
type step struct {
	name, key string
	// make writes the file.
	make func(ctx context.Context, file string) error
}

// run returns the step's file, made now unless it is there. The file appears whole or not at all.
func (s store) run(ctx context.Context, st step) (string, error) {
	file := filepath.Join(s.dir, st.name+"-"+st.key[:16])
	if _, err := os.Stat(file); err == nil {
		now := time.Now()
		return file, os.Chtimes(file, now, now)
	}
	draft := file + ".draft"
	if err := os.RemoveAll(draft); err != nil {
		return "", fmt.Errorf("%s: %w", st.name, err)
	}
	defer os.RemoveAll(draft)
	err := s.timed(st.name, func() error { return st.make(ctx, draft) })
	if err != nil {
		return "", fmt.Errorf("%s: %w", st.name, err)
	}
	return file, os.Rename(draft, file)
}

// timed runs f and writes a line: what, when it begins, then how many seconds it took or that it failed.
func (s store) timed(what string, f func() error) error {
	fmt.Fprintf(s.progress, "%-32s", what)
	start := time.Now()
	err := f()
	if err != nil {
		fmt.Fprintln(s.progress, " failed")
		return err
	}
	fmt.Fprintf(s.progress, " %6.1f s\n", time.Since(start).Seconds())
	return nil
}

// sweep removes what no build has used for keepUnused. It is best effort: what stays costs space, nothing else.
func (s store) sweep(now time.Time) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.Name() != "lock" && now.Sub(info.ModTime()) > keepUnused {
			os.RemoveAll(filepath.Join(s.dir, e.Name()))
		}
	}
}
