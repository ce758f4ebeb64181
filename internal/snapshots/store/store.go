// Package store keeps the files of etcd snapshots: in a folder of this host, or in an S3-compatible store.
//
// # Does
//
// Writes a file from a stream so that it appears whole or not at all, reads, lists and deletes. Names are relative, with
// slashes; they cannot lead out of the folder, nor of the prefix of a bucket.
//
// # Owns
//
// The files below its folder or prefix.
//
// # Never
//
// Knows what is in a file (package snapshots does), or who may use which folder or endpoint (package policy does).
//
// # Read first
//
// [Store], then folder.go.
package store

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
	// ReasonFull says that there is no space left, or no more is allowed.
	ReasonFull = "SnapshotStoreFull"
	// ReasonMissing says that there is no such file.
	ReasonMissing = "SnapshotMissing"
	// ReasonUnreachable says that the store does not answer, or not as it should.
	ReasonUnreachable = "SnapshotStoreUnreachable"
	// ReasonRefused says that the store refuses, for example because of its keys.
	ReasonRefused = "SnapshotStoreRefused"
	// ReasonTooLarge says that a file has more bytes than it may have.
	ReasonTooLarge = "SnapshotTooLarge"
)

// MaxListed is how many files one call of List returns; with more there is an error.
const MaxListed = 10000

// File is a file of a store.
type File struct {
	// Name is relative to the store, with slashes.
	Name string
	// Bytes is its size.
	Bytes int64
	// Modified is when it was written.
	Modified time.Time
}

// Store keeps files. Errors are faults.
type Store interface {
	// Write stores what r has as a file, which replaces one of this name. If it fails, or r does, there is no such file, or the
	// old one. More than most bytes are an error.
	Write(ctx context.Context, name string, r io.Reader, most int64) error
	// Read opens a file.
	Read(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns the files below a folder, by name.
	List(ctx context.Context, folder string) ([]File, error)
	// Delete deletes a file. One that does not exist is no error.
	Delete(ctx context.Context, name string) error
	// Tidy removes what is left of writes that were interrupted before this time.
	Tidy(ctx context.Context, folder string, before time.Time) error
}

// clean refuses names that lead elsewhere.
func clean(name string) error {
	if name == "" || path.IsAbs(name) || path.Clean(name) != name || name == ".." || strings.HasPrefix(name, "../") || strings.ContainsAny(name, "\\\x00") {
		return fault.New(fault.Bug, "SnapshotName", "%q cannot be the name of a file of a snapshot", name)
	}
	return nil
}

// bounded reads at most so many bytes, fails at more, and ends with the context.
type bounded struct {
	ctx  context.Context
	from io.Reader
	left int64
	most int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.from.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return 0, fault.New(fault.Invalid, ReasonTooLarge, "The snapshot has more than the %d MiB that it may have", b.most>>20)
	}
	return n, err
}

func bound(ctx context.Context, r io.Reader, most int64) io.Reader {
	return &bounded{ctx: ctx, from: r, left: most, most: most}
}

// passed returns the fault or the end of the context that is in err, else what otherwise makes of it.
func passed(err error, otherwise func() error) error {
	switch {
	case err == nil:
		return nil
	case fault.As(err) != nil, errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.Unreachable, ReasonUnreachable, "The store of snapshots did not answer in time").From(err)
	}
	return otherwise()
}

func missing(name string, err error) error {
	return fault.New(fault.Gone, ReasonMissing, "The store has no file %s", name).From(err)
}

func tooMany(folder string) error {
	return fault.New(fault.Invalid, "SnapshotStoreTooLarge", "There are more than %d files in %s of the store: remove those that are not of snapshots", MaxListed, folder)
}

func doing(what, name string, err error) error { return fmt.Errorf("%s %s: %w", what, name, err) }
