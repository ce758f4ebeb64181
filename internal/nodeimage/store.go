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

// cacheRetention is the time after which unused files are removed from the cache.
const cacheRetention = 14 * 24 * time.Hour

// keyOf returns the hash of parts. It includes the length of each part, so that moving bytes from one part to the next
// results in another key.
func keyOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// BuildCache caches the result of each step in a file that is named after the step and the key of its inputs. Builds of
// node images ([Build]) and of control plane programs (package versions) use one each.
type BuildCache struct {
	Dir      string
	Progress io.Writer // receives a line for each step
}

// Lock waits until no other build uses the directory, and returns the function that unlocks it. Each build holds it
// from its start to its end.
func (s BuildCache) Lock() (func(), error) {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the cache directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(s.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the cache directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		fmt.Fprintln(s.Progress, "waiting for another build")
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			return nil, fmt.Errorf("locking the cache directory: %w", err)
		}
	}
	return func() { f.Close() }, nil
}

// BuildStep creates a file from inputs with the hash Key. The Key is part of the name of the file, so every input must
// be in it.
type BuildStep struct {
	Name, Key string
	// Make writes the file.
	Make func(ctx context.Context, file string) error
}

// file returns the path of the result of a step.
func (s BuildCache) file(st BuildStep) string { return filepath.Join(s.Dir, st.Name+"-"+st.Key[:16]) }

// retain marks the results of steps as used, as far as they exist, so that [BuildCache.Sweep] does not remove them.
func (s BuildCache) retain(steps ...BuildStep) {
	now := time.Now()
	for _, st := range steps {
		_ = os.Chtimes(s.file(st), now, now)
	}
}

// Run returns the file of the step and creates it if it does not exist. The file is created atomically.
func (s BuildCache) Run(ctx context.Context, st BuildStep) (string, error) {
	file := s.file(st)
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

// Timed runs f and prints a line of progress: the step when it begins, then its duration in seconds or its failure.
func (s BuildCache) Timed(what string, f func() error) error {
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

// Sweep removes files that no build has used for cacheRetention. Errors are ignored, because remaining files only use
// disk space. Each build of images calls it at its end.
func (s BuildCache) Sweep(now time.Time) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.Name() != "lock" && now.Sub(info.ModTime()) > cacheRetention {
			os.RemoveAll(filepath.Join(s.Dir, e.Name()))
		}
	}
}
