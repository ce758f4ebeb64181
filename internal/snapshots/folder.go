package snapshots

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

// partial is the name prefix of incomplete files.
const partial = ".partial-"

// folder is a store in a folder of this host. Its methods implement [Store]. Tenants choose names, so all access is
// through [os.Root], which does not follow links out of the folder.
type folder struct {
	path string
	// maxBytes limits the total size of all files in bytes; 0 means unlimited.
	maxBytes int64
}

// newFolder returns a store in a folder of this host, for a policy with spec.destination.folder. The first write
// creates the folder. The total size of its files is limited to most bytes; 0 means unlimited. Symbolic links that lead
// out of the folder are not followed. [StoreSettings.Open] calls it.
func newFolder(path string, most int64) Store { return folder{path: path, maxBytes: most} }

// open opens the folder. If create is true, a missing folder is created.
func (f folder) open(create bool) (*os.Root, error) {
	if create {
		if err := os.MkdirAll(f.path, 0o700); err != nil {
			return nil, asDisk(err)
		}
	}
	return os.OpenRoot(f.path)
}

func (f folder) Write(ctx context.Context, name string, r io.Reader, most int64) error {
	if err := clean(name); err != nil {
		return err
	}
	left, err := f.left(ctx)
	if err != nil {
		return err
	}
	root, err := f.open(true)
	if err != nil {
		return wrapError("opening", f.path, err)
	}
	defer func() { _ = root.Close() }()
	dir, base := path.Split(name)
	if dir != "" {
		if err := root.MkdirAll(path.Clean(dir), 0o700); err != nil {
			return asDisk(err)
		}
	}
	temporary := dir + partial + base
	if err := fill(root, temporary, &quota{from: limitReader(ctx, r, most), left: left, most: f.maxBytes}); err != nil {
		_ = root.Remove(temporary)
		return asStoreFault(err, func() error { return asDisk(err) })
	}
	if err := root.Rename(temporary, name); err != nil {
		_ = root.Remove(temporary)
		return asDisk(err)
	}
	return syncFolder(root, path.Clean(path.Dir(name)))
}

// left returns how many more bytes may be written.
func (f folder) left(ctx context.Context) (int64, error) {
	if f.maxBytes == 0 {
		return 0, nil
	}
	files, err := f.walk(ctx, ".", true)
	if err != nil {
		return 0, err
	}
	left := f.maxBytes
	for _, file := range files {
		left -= file.Bytes
	}
	return left, nil
}

// quota returns an error once more than left bytes are read, unless most is 0.
type quota struct {
	from       io.Reader
	left, most int64
}

func (q *quota) Read(p []byte) (int, error) {
	n, err := q.from.Read(p)
	q.left -= int64(n)
	if q.most > 0 && q.left < 0 {
		return 0, fault.New(fault.Invalid, reasonFull,
			"The snapshots of this namespace have reached the limit of %d MiB on this host: retain fewer snapshots, use an S3-compatible store, or ask the operator to raise snapshots.namespaceMiB in the configuration file (--config of slipway up or slipway manager)", q.most>>20)
	}
	return n, err
}

// fill writes a file and syncs it to disk.
func fill(root *os.Root, name string, r io.Reader) error {
	out, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, r); err != nil {
		_ = out.Close()
		return err
	}
	if err := out.Sync(); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}

// syncFolder syncs a directory to disk, so that a renamed file survives a crash of the host.
func syncFolder(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return asDisk(err)
	}
	defer func() { _ = dir.Close() }()
	if err := dir.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return asDisk(err)
	}
	return nil
}

func (f folder) Read(_ context.Context, name string) (io.ReadCloser, error) {
	if err := clean(name); err != nil {
		return nil, err
	}
	root, err := f.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingFault(name, err)
	}
	if err != nil {
		return nil, asDisk(err)
	}
	defer func() { _ = root.Close() }()
	in, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingFault(name, err)
	}
	if err != nil {
		return nil, asDisk(err)
	}
	return in, nil
}

func (f folder) List(ctx context.Context, below string) ([]File, error) {
	if err := clean(below); err != nil {
		return nil, err
	}
	return f.walk(ctx, below, false)
}

// walk returns the files below a folder of the store. Incomplete files are included if all is true.
func (f folder) walk(ctx context.Context, below string, all bool) ([]File, error) {
	root, err := f.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, asDisk(err)
	}
	defer func() { _ = root.Close() }()
	var out []File
	err = fs.WalkDir(root.FS(), below, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() || !all && strings.HasPrefix(entry.Name(), partial) {
			return ctx.Err()
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(out) == maxListed {
			return tooMany(below)
		}
		out = append(out, File{Name: name, Bytes: info.Size(), Modified: info.ModTime()})
		return ctx.Err()
	})
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return out, asStoreFault(err, func() error { return asDisk(err) })
}

func (f folder) Delete(_ context.Context, name string) error {
	if err := clean(name); err != nil {
		return err
	}
	root, err := f.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return asDisk(err)
	}
	defer func() { _ = root.Close() }()
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return asDisk(err)
	}
	return nil
}

func (f folder) Tidy(ctx context.Context, below string, before time.Time) error {
	files, err := f.walk(ctx, below, true)
	if err != nil {
		return err
	}
	for _, file := range files {
		if strings.HasPrefix(path.Base(file.Name), partial) && file.Modified.Before(before) {
			if err := f.Delete(ctx, file.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// asDisk converts a file system error to a fault. Host paths are only for the operator, so they appear in the log and
// not in the message.
func asDisk(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.New(fault.Transient, reasonFull, "The disk of the store of snapshots is full: free space on it, or keep fewer snapshots").From(err)
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Invalid, reasonRefused, "The folder of the store of snapshots may not be read or written by slipway: correct its owner or mode").From(err)
	}
	return fault.New(fault.Transient, reasonUnreachable, "The folder of the store of snapshots cannot be read or written").From(err)
}
