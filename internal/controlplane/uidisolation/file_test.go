package uidisolation_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// hostile are what a control plane can put where a file is expected, by what it is.
func hostile(outside string) map[string]func(path string) error {
	return map[string]func(path string) error{
		"a link":                   func(path string) error { return os.Symlink(outside, path) },
		"a relative link":          func(path string) error { return os.Symlink("../outside", path) },
		"a link to nothing":        func(path string) error { return os.Symlink(outside+"-missing", path) },
		"a pipe":                   func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a folder":                 func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		"a name of a file of root": func(path string) error { return os.Link(outside, path) },
	}
}

// taken is a control plane that was taken over, with a file of root outside of its folder.
func taken(t *testing.T) (folder, outside string, user int) {
	t.Helper()
	root := t.TempDir()
	folder, outside = plane(t, root, "a"), filepath.Join(root, "outside")
	put(t, outside)
	user = assign(t, folder)
	give(t, folder, user)
	return folder, outside, user
}

// What it puts in the place of a file is not read, and no reader waits.
func TestRead(t *testing.T) {
	if !possible(t) {
		return
	}
	folder, outside, user := taken(t)
	if data, err := uidisolation.Read(folder, "run.json"); err != nil || string(data) != "secret" {
		t.Errorf("its own file: %q, %v", data, err)
	}
	for name, plant := range hostile(outside) {
		for _, file := range []string{"run.json", "pki/ca.key"} {
			path := filepath.Join(folder, file)
			if err := errors.Join(os.RemoveAll(path), plant(path)); err != nil {
				t.Fatal(err)
			}
			if data, err := uidisolation.Read(folder, file); err == nil {
				t.Errorf("%s as %s was read: %q", name, file, data)
			}
			if f, err := uidisolation.Open(path, os.O_RDONLY); err == nil {
				t.Errorf("%s as %s was opened", name, file)
				_ = f.Close()
			}
		}
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(folder, "restore")); err != nil {
		t.Fatal(err)
	}
	if data, err := uidisolation.Read(folder, "restore/outside"); err == nil {
		t.Errorf("along a link: %q", data)
	}
	large := filepath.Join(folder, "large")
	if err := errors.Join(os.WriteFile(large, nil, 0o600), os.Truncate(large, 1<<40), os.Chown(large, user, user)); err != nil {
		t.Fatal(err)
	}
	if data, err := uidisolation.Read(folder, "large"); err != nil || len(data) != 1<<20 {
		t.Errorf("a large file: %d bytes, %v", len(data), err)
	}
}

// What the manager alone writes counts only where the manager wrote it.
func TestReadOurs(t *testing.T) {
	if !possible(t) {
		return
	}
	folder, _, user := taken(t)
	if data, err := uidisolation.ReadTrusted(folder, "keeper"); err != nil || string(data) != "secret" {
		t.Errorf("of the manager: %q, %v", data, err)
	}
	if err := os.Chown(filepath.Join(folder, "keeper"), user, user); err != nil {
		t.Fatal(err)
	}
	if _, err := uidisolation.ReadTrusted(folder, "keeper"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of the control plane: %v", err)
	}
}

// A log is appended to where it is the control plane's, and replaced where it is not.
func TestAppend(t *testing.T) {
	if !possible(t) {
		return
	}
	folder, outside, user := taken(t)
	path := filepath.Join(folder, "log", "control-plane.log")
	write := func(what, want string) {
		t.Helper()
		f, err := uidisolation.Append(path, user)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer func() { _ = f.Close() }()
		if _, err := io.WriteString(f, "line"); err != nil {
			t.Fatal(err)
		}
		if got := string(mustRead(t, path)); got != want || owner(t, path, user) != "user:user 600" {
			t.Errorf("%s: got %q, %s, want %q", what, got, owner(t, path, user), want)
		}
	}
	write("its own", "secretline")
	for name, plant := range hostile(outside) {
		if err := errors.Join(os.RemoveAll(path), plant(path)); err != nil {
			t.Fatal(err)
		}
		write(name, "line")
	}
	if got := string(mustRead(t, outside)); got != "secret" {
		t.Errorf("outside: %q", got)
	}
	if _, err := os.Stat(outside + "-missing"); err == nil {
		t.Error("a file was created outside")
	}
	if err := errors.Join(os.RemoveAll(filepath.Dir(path)), os.Symlink(filepath.Dir(outside), filepath.Dir(path))); err != nil {
		t.Fatal(err)
	}
	if _, err := uidisolation.Append(path, user); !uidisolation.IsForeign(err) {
		t.Errorf("along a link: %v", err)
	}
}

// Without a user of its own, files are opened as ever.
func TestOpenOfOthers(t *testing.T) {
	folder := t.TempDir()
	put(t, filepath.Join(folder, "file"))
	if err := os.Symlink("file", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	for _, read := range []func() ([]byte, error){
		func() ([]byte, error) { return uidisolation.Read(folder, "link") },
		func() ([]byte, error) { return uidisolation.ReadTrusted(folder, "link") },
		func() ([]byte, error) {
			f, err := uidisolation.Open(filepath.Join(folder, "link"), os.O_RDONLY)
			if err != nil {
				return nil, err
			}
			defer func() { _ = f.Close() }()
			return io.ReadAll(f)
		},
	} {
		if data, err := read(); err != nil || string(data) != "secret" {
			t.Errorf("%q, %v", data, err)
		}
	}
}
