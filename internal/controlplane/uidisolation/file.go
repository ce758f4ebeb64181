package uidisolation

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxFile limits how much of a control plane's file is read, in bytes.
const maxFile = 1 << 20

// errForeign is returned for an unexpected file that a control plane created.
var errForeign = errors.New("not a regular file, or not one of this control plane")

// Read returns the content of a file that the process of a control plane may have written. The name is
// relative to the directory. If the control plane has a separate user, the file must be a regular file of
// this user or of root in the directory, and at most 1 MiB is read. Packages processconfig and supervisor read the
// files of a control plane with it.
func Read(folder, name string) ([]byte, error) {
	return read(folder, name, func(user int, st unix.Stat_t) error {
		if int(st.Uid) == user || st.Nlink == 1 {
			return nil
		}
		return errForeign
	})
}

// ReadTrusted returns the content of a file that only programs of root write. A file that the control plane
// created under this name counts as missing. Packages hosttransfer, processconfig and supervisor call it.
func ReadTrusted(folder, name string) ([]byte, error) {
	return read(folder, name, func(_ int, st unix.Stat_t) error {
		if IsControlPlaneUser(int(st.Uid)) {
			return fs.ErrNotExist
		}
		return nil
	})
}

func read(folder, name string, accept func(user int, st unix.Stat_t) error) ([]byte, error) {
	user, own := UserOfFolder(folder)
	if !own {
		return os.ReadFile(filepath.Join(folder, name))
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	st, err := regular(f)
	if err == nil {
		err = accept(user, st)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s in %s: %w", name, folder, err)
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// Open opens a file in the directory of a hosted control plane or in its subdirectories, with flags like os.OpenFile.
// If the control plane has a separate user, it follows no links and only opens regular files of this user or of root.
// Packages childproc and datadir open logs, locks and other files with it.
func Open(path string, flag int) (*os.File, error) {
	user, own := UserOfFolder(filepath.Dir(path))
	if !own {
		return os.OpenFile(path, flag, 0)
	}
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EISDIR) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errForeign}
	}
	if err != nil {
		return nil, err
	}
	st, err := regular(f)
	if err == nil && int(st.Uid) != user && st.Nlink != 1 {
		err = errForeign
	}
	if err != nil {
		_ = f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

// IsForeign reports whether the error is caused by an unexpected file that a control plane created. Package datadir
// treats such a file as missing when it probes a lock.
func IsForeign(err error) bool { return errors.Is(err, errForeign) }

func regular(f *os.File) (st unix.Stat_t, err error) {
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return st, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return st, errForeign
	}
	return st, nil
}

// CheckFolder rejects a directory that is not owned by root, in which the control plane could replace
// entries. [Append] and datadir.WriteFileFor call it before they create a file there.
func CheckFolder(path string) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
		return &fs.PathError{Op: "open", Path: path, Err: errForeign}
	}
	return nil
}

// Append opens a file in a shared directory for appending, and creates it for the user if it is missing. It
// deletes an unexpected file at this path. Package childproc opens logs with it.
func Append(path string, user int) (*os.File, error) {
	if err := CheckFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	f, err := Open(path, os.O_WRONLY|os.O_APPEND)
	switch {
	case err == nil:
		return f, nil
	case IsForeign(err):
		if err := os.RemoveAll(path); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Chown(user, user); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
