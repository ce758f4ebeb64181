package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of faults of stores.
const (
	// reasonFull means that no space is left or the quota is exhausted.
	reasonFull = "SnapshotStoreFull"
	// reasonMissing means that the file does not exist.
	reasonMissing = "SnapshotMissing"
	// reasonUnreachable means that the store does not respond, or that its response is invalid.
	reasonUnreachable = "SnapshotStoreUnreachable"
	// reasonRefused means that the store rejects the request, for example because of the credentials.
	reasonRefused = "SnapshotStoreRefused"
	// reasonTooLarge means that a file exceeds its maximum size.
	reasonTooLarge = "SnapshotTooLarge"
)

// maxListed is the maximum number of files that List returns. More files are an error.
const maxListed = 10000

// File is a file of a store. [Store] lists files, and the functions of manifest.go recognize snapshots by their names.
type File struct {
	// Name is relative to the store, with slashes.
	Name string
	// Bytes is the size of the file.
	Bytes int64
	// Modified is the time of the last write.
	Modified time.Time
}

// Store stores files. The package takes, lists, fetches and removes snapshots with it. [newFolder] and [newS3]
// implement it. Its errors are faults, whose reasons appear in conditions of EtcdSnapshotPolicies.
type Store interface {
	// Write stores the content of r as a file and replaces an existing file with this name. If it fails, the file
	// does not exist or is unchanged. It fails if r has more than most bytes.
	Write(ctx context.Context, name string, r io.Reader, most int64) error
	// Read opens a file.
	Read(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns the files below a folder, sorted by name.
	List(ctx context.Context, folder string) ([]File, error)
	// Delete deletes a file. It returns no error if the file does not exist.
	Delete(ctx context.Context, name string) error
	// Tidy removes the remains of writes that were interrupted before the given time.
	Tidy(ctx context.Context, folder string, before time.Time) error
}

// clean rejects names that lead out of the store. Stores call it before they read, list, write or delete.
func clean(name string) error {
	if name == "" || path.IsAbs(name) || path.Clean(name) != name || name == ".." || strings.HasPrefix(name, "../") || strings.ContainsAny(name, "\\\x00") {
		return fault.New(fault.Bug, "SnapshotName", "%q cannot be the name of a file of a snapshot", name)
	}
	return nil
}

// limitedReader limits the number of bytes read, and ends with the context.
type limitedReader struct {
	ctx  context.Context
	from io.Reader
	left int64
	most int64
}

func (b *limitedReader) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.from.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return 0, fault.New(fault.Invalid, reasonTooLarge, "The snapshot exceeds the limit of %d MiB", b.most>>20)
	}
	return n, err
}

// limitReader returns a reader that fails after the given number of bytes. Stores limit the files of a snapshot with
// it.
func limitReader(ctx context.Context, r io.Reader, most int64) io.Reader {
	return &limitedReader{ctx: ctx, from: r, left: most, most: most}
}

// asStoreFault returns err if it is a fault or a cancellation, a fault for an exceeded deadline, and the result of
// otherwise for other errors. The stores convert all their errors with it.
func asStoreFault(err error, otherwise func() error) error {
	switch {
	case err == nil:
		return nil
	case fault.As(err) != nil, errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.Unreachable, reasonUnreachable, "The store of snapshots did not respond in time").From(err)
	}
	return otherwise()
}

// missingFault returns the fault for a file that the store does not contain.
func missingFault(name string, err error) error {
	return fault.New(fault.Gone, reasonMissing, "The store has no file %s", name).From(err)
}

// tooMany returns the fault for a folder with more files than a store lists.
func tooMany(folder string) error {
	return fault.New(fault.Invalid, "SnapshotStoreTooLarge", "There are more than %d files in %s of the store: remove files that do not belong to snapshots", maxListed, folder)
}

// wrapError adds the operation and the file to an error. folder.go calls it.
func wrapError(what, name string, err error) error { return fmt.Errorf("%s %s: %w", what, name, err) }
