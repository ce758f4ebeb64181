package ownuser

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxFile bounds what is read of a file in the folder of a control plane, in bytes.
const maxFile = 1 << 20

// errForeign is for what a control plane put where one of its files is expected.
var errForeign = errors.New("not a regular file, or not one of this control plane")

// Read returns the content of a file that the process of a control plane may have written, by its path in the folder. Of one with a
// user of its own, it is a regular file of that user, or of root, in that folder, and at most 1 MiB of it.
func Read(folder, name string) ([]byte, error) {
	return read(folder, name, func(user int, st unix.Stat_t) error {
		if int(st.Uid) == user || st.Nlink == 1 {
			return nil
		}
		return errForeign
	})
}

// ReadOurs returns the content of a file that programs of root alone write: one that the control plane put there does not exist.
func ReadOurs(folder, name string) ([]byte, error) {
	return read(folder, name, func(_ int, st unix.Stat_t) error {
		if IsOwn(int(st.Uid)) {
			return fs.ErrNotExist
		}
		return nil
	})
}

func read(folder, name string, accept func(user int, st unix.Stat_t) error) ([]byte, error) {
	user, own := Of(folder)
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

// Open opens a file in the folder of a control plane, or in one of those that its manager writes to, by flags as those of os.OpenFile. Where
// the control plane has a user of its own, no link is followed and nothing but a regular file of that user, or of root, is opened.
func Open(path string, flag int) (*os.File, error) {
	user, own := Of(filepath.Dir(path))
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

// IsForeign reports whether an error of this package is about something that is not a file of the control plane.
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

// CheckFolder refuses a folder that is not root's: one in which the control plane decides where a name leads to.
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

// Append opens a file in a folder that Give shares for appending, for the user, and creates it where it is missing. What is not a file of the
// control plane is removed.
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
