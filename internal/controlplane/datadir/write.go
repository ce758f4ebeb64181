package datadir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// WriteFile replaces a file of a data directory atomically and durably: a reader, or a process that starts after a
// crash, sees either the old or the new content, and a power failure does not undo the write. The directory is created
// with mode 0700 if it is missing. If the file already has the content and mode, it is not written, and changed is
// false. Package controlplane and its subpackages write certificates, configurations and states with it.
func WriteFile(path string, data []byte, mode os.FileMode) (changed bool, err error) {
	return write(path, data, mode, -1)
}

// WriteJSON writes a value as indented JSON with [WriteFile] and mode 0600. Packages datadir, hosttransfer, supervisor
// and others call it.
func WriteJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = WriteFile(path, append(data, '\n'), 0o600)
	return err
}

// ReadJSON reads a file that [WriteJSON] wrote. A file that does not exist leaves the value unchanged. Packages
// datadir, processconfig and others call it.
func ReadJSON(path string, value any) (found bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return true, &damagedError{path, err}
	}
	return true, nil
}

// damagedError is the error for a file whose content cannot be decoded. unusable (fault.go) recognizes it.
type damagedError struct {
	path string
	err  error
}

func (e *damagedError) Error() string { return "read " + e.path + ": " + e.err.Error() }
func (e *damagedError) Unwrap() error { return e.err }

// WriteFileFor is WriteFile for a file in the directory of a control plane whose user must be able to read
// and replace it (package uidisolation). Package hosted/process calls it.
func WriteFileFor(user int, path string, data []byte, mode os.FileMode) (changed bool, err error) {
	if err := uidisolation.CheckFolder(filepath.Dir(path)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	return write(path, data, mode, user)
}

// write sets the owner of the file to user, unless it is -1.
func write(path string, data []byte, mode os.FileMode, user int) (changed bool, err error) {
	if hasContent(path, data, mode) {
		return false, nil
	}
	dir := filepath.Dir(path)
	if err := createFolder(dir); err != nil {
		return false, fmt.Errorf("create folder %s: %w", dir, err)
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err := writeContent(f, data, mode, user); err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	if err := syncFolder(dir); err != nil {
		return true, fmt.Errorf("write %s: %w", path, err)
	}
	return true, nil
}

// createFolder durably creates a directory and its parents.
func createFolder(dir string) error {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || filepath.Dir(d) == d {
			break
		}
		missing = append(missing, d)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range missing {
		if err := syncFolder(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

// syncFolder makes changes of directory entries durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // not supported by every file system
		return err
	}
	return nil
}

func hasContent(path string, data []byte, mode os.FileMode) bool {
	f, err := uidisolation.Open(path, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || info.Mode().Perm() != mode || info.Size() != int64(len(data)) {
		return false
	}
	old, err := io.ReadAll(io.LimitReader(f, int64(len(data))+1)) // the file may grow during the read
	return err == nil && bytes.Equal(old, data)
}

func writeContent(f *os.File, data []byte, mode os.FileMode, user int) error {
	if _, err := f.Write(data); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Chmod(mode); err != nil {
		_ = f.Close()
		return err
	}
	if user != -1 {
		if err := f.Chown(user, user); err != nil {
			_ = f.Close()
			return err
		}
	}
	if err := f.Sync(); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// Rename durably renames a directory on the same file system. The target must not exist. `slipway move` calls it.
func Rename(from, to string) error {
	if err := createFolder(filepath.Dir(to)); err != nil {
		return fmt.Errorf("create folder %s: %w", filepath.Dir(to), err)
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return errors.Join(syncFolder(filepath.Dir(to)), syncFolder(filepath.Dir(from)))
}
