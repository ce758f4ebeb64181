// Package logfile sends what a process writes to its standard error, panics of
// the runtime included, to a file that does not grow without end.
//
// Does: replaces the file descriptors of standard error (and output), turns
// the file over when it is too large, keeping one older file, and reserves space on the disk for what a process writes when it ends.
//
// Owns: PATH and PATH.1.
//
// Never: formats anything.
//
// Read first: Redirect.
package logfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/plane/ownuser"
)

// MaxSize is the size, in bytes, above which a log file is turned over.
const MaxSize = 16 << 20

// checkEvery is how often the size is checked.
const checkEvery = 20 * time.Second

// Open opens path for appending, making its folder. Where the file is above
// MaxSize it is turned over first.
func Open(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() > MaxSize {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		reserve(f)
	}
	return f, err
}

// reserved is how much space is kept behind the end of a log, in bytes, so that a process whose disk is full can still write why it ends.
const reserved = 256 << 10

// reserve allocates space behind the end of the log, which stays the end. Where the file system cannot do so, or has no space, there is none.
func reserve(f *os.File) {
	if info, err := f.Stat(); err == nil {
		_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, info.Size(), reserved)
	}
}

// OpenFor is Open for the log of a control plane that has a user of its own: the process of that user writes to it, and turns it over.
func OpenFor(user int, path string) (*os.File, error) {
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	f, err := ownuser.Append(path, user)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || info.Size() <= MaxSize {
		reserve(f)
		return f, err
	}
	_ = f.Close()
	if err := os.Rename(path, path+".1"); err != nil {
		return nil, err
	}
	return ownuser.Append(path, user)
}

// Redirect makes path the standard error and output of this process, and looks
// after its size until ctx ends. It returns the earlier standard error for what
// a person should read, and restore, which puts both streams back.
func Redirect(ctx context.Context, path string) (stderr *os.File, restore func() error, err error) {
	out, err := duplicate(os.Stdout)
	if err != nil {
		return nil, nil, err
	}
	stderr, err = duplicate(os.Stderr)
	if err != nil {
		return nil, nil, err
	}
	if err := replace(path); err != nil {
		return nil, nil, fmt.Errorf("log to %s: %w", path, err)
	}
	ctx, stop := context.WithCancel(ctx)
	go Watch(ctx, path)
	return stderr, func() error {
		stop()
		return errors.Join(unix.Dup3(int(out.Fd()), 1, 0), unix.Dup3(int(stderr.Fd()), 2, 0))
	}, nil
}

func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

func replace(path string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return errors.Join(unix.Dup3(int(f.Fd()), 1, 0), unix.Dup3(int(f.Fd()), 2, 0))
}

// Watch looks after the size of path, which is already the standard error of this
// process, until ctx ends.
func Watch(ctx context.Context, path string) {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if info, err := os.Stat(path); err != nil || info.Size() > MaxSize {
				_ = replace(path) // the old descriptor stays in use; retried at the next tick
			}
			reserve(os.Stderr)
		}
	}
}

// tailBytes is how far back Tail looks for lines.
const tailBytes = 64 << 10

// Tail returns the last lines of the file at path, at most n, read from at most its last 64 KiB. A missing file has no lines.
func Tail(path string, n int) ([]string, error) {
	f, err := ownuser.Open(path, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if err := seekLines(f, n, tailBytes); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, tailBytes)) // it may grow meanwhile
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range bytes.Lines(data) {
		lines = append(lines, string(bytes.TrimRight(line, "\r\n")))
	}
	return lines[:min(n, len(lines))], nil
}
