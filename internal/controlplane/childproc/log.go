package childproc

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

	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// maxSize is the size, in bytes, above which a log file is rotated.
const maxSize = 16 << 20

// checkEvery is the interval between checks of the size.
const checkEvery = 20 * time.Second

// OpenLog opens the log file of a process for appending, and creates its directory. A file larger than maxSize is
// rotated first. [Service.Start], [RedirectLog], [WatchLog] and the supervisor of `slipway up` call it.
func OpenLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() > maxSize {
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

// reserved is the disk space that is allocated after the end of a log, in bytes, so that a process can still
// log the reason for its exit when the disk is full.
const reserved = 256 << 10

// reserve allocates disk space after the end of the log without changing its size. Errors are ignored, for
// example if the file system does not support it.
func reserve(f *os.File) {
	if info, err := f.Stat(); err == nil {
		_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, info.Size(), reserved)
	}
}

// openLogFor is OpenLog for the log of a process that runs as the user, and writes and rotates the log itself. 0 means
// the user of this process. [Service.Start] calls it.
func openLogFor(user int, path string) (*os.File, error) {
	if user == 0 {
		return OpenLog(path)
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	f, err := uidisolation.Append(path, user)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || info.Size() <= maxSize {
		reserve(f)
		return f, err
	}
	_ = f.Close()
	if err := os.Rename(path, path+".1"); err != nil {
		return nil, err
	}
	return uidisolation.Append(path, user)
}

// RedirectLog redirects standard error and output of this process to the file, and limits its size until ctx ends. The
// process of `slipway up` that runs the management cluster calls it. It returns the previous standard error, for
// messages to the user, and restore, which restores both streams.
func RedirectLog(ctx context.Context, path string) (stderr *os.File, restore func() error, err error) {
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
	go WatchLog(ctx, path)
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
	f, err := OpenLog(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return errors.Join(unix.Dup3(int(f.Fd()), 1, 0), unix.Dup3(int(f.Fd()), 2, 0))
}

// WatchLog limits the size of the file, which must already be the standard error of this process, until ctx ends.
// Processes of a [Service] call it.
func WatchLog(ctx context.Context, path string) {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if info, err := os.Stat(path); err != nil || info.Size() > maxSize {
				_ = replace(path) // the previous descriptor remains in use; retried at the next tick
			}
			reserve(os.Stderr)
		}
	}
}

// tailBytes limits how far back TailLog searches for lines.
const tailBytes = 64 << 10

// TailLog returns the last n lines of the file at path, from at most its last 64 KiB. It is for messages about a
// process that exited. It returns none if the file does not exist. The supervisor and `slipway up -d` call it.
func TailLog(path string, n int) ([]string, error) {
	f, err := uidisolation.Open(path, os.O_RDONLY)
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
	data, err := io.ReadAll(io.LimitReader(f, tailBytes)) // the file may grow during the read
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range bytes.Lines(data) {
		lines = append(lines, string(bytes.TrimRight(line, "\r\n")))
	}
	return lines[:min(n, len(lines))], nil
}
