package datadir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// plane is the folder of a control plane with a user of its own; false where the tests are not run as root, and there are none.
func plane(t *testing.T) (folder string, user int, possible bool) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "plane")
	if err := uidisolation.Unavailable(folder); errors.Is(err, uidisolation.ErrNotRoot) {
		return "", 0, false
	} else if err != nil {
		t.Fatal(err)
	}
	user, err := uidisolation.Assign(folder)
	if err := errors.Join(err, os.Mkdir(filepath.Join(folder, "pki"), 0o700), uidisolation.ChownFolder(folder, user)); err != nil {
		t.Fatal(err)
	}
	return folder, user, true
}

// A lock that a control plane put in the place of its own is not taken for one that a process holds, and no one waits for it.
func TestProbeOfAControlPlaneThatWasTakenOver(t *testing.T) {
	folder, _, possible := plane(t)
	if !possible {
		return
	}
	held := filepath.Join(t.TempDir(), "lock") // the one of the management cluster
	if _, _, _, err := datadir.Acquire(held, holder); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "lock")
	for name, plant := range map[string]func() error{
		"a link":   func() error { return os.Symlink(held, path) },
		"a pipe":   func() error { return unix.Mkfifo(path, 0o600) },
		"a folder": func() error { return os.Mkdir(path, 0o700) },
		"a name":   func() error { return os.Link(held, path) },
	} {
		if err := errors.Join(os.RemoveAll(path), plant()); err != nil {
			t.Fatal(err)
		}
		if h, held, err := datadir.Probe(path); held || err != nil || h.PID != 0 {
			t.Errorf("%s: held %v by %+v, %v", name, held, h, err)
		}
	}
	if _, held, err := datadir.Probe(held); !held || err != nil {
		t.Errorf("the lock itself: %v, %v", held, err)
	}
}

// What the manager writes for a control plane is that user's, whatever is in its place, and is not written along a link.
func TestWriteFileFor(t *testing.T) {
	folder, user, possible := plane(t)
	if !possible {
		return
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "pki", "ca.key")
	for name, plant := range map[string]func() error{
		"nothing": func() error { return nil },
		"a link":  func() error { return os.Symlink(outside, path) }, // to the same content
		"a pipe":  func() error { return unix.Mkfifo(path, 0o600) },
		"a name":  func() error { return os.Link(outside, path) },
	} {
		if err := errors.Join(os.RemoveAll(path), plant()); err != nil {
			t.Fatal(err)
		}
		if changed, err := datadir.WriteFileFor(user, path, []byte("new"), 0o600); !changed || err != nil {
			t.Errorf("%s: changed %v, %v", name, changed, err)
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || st.Mode != unix.S_IFREG|0o600 || int(st.Uid) != user || int(st.Gid) != user {
			t.Errorf("%s: mode %o of %d, %v", name, st.Mode, st.Uid, err)
		}
	}
	if changed, err := datadir.WriteFileFor(user, path, []byte("new"), 0o600); changed || err != nil {
		t.Errorf("the same again: changed %v, %v", changed, err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(outside, &st); err != nil || st.Uid != 0 {
		t.Errorf("outside: of %d, %v", st.Uid, err)
	}
	pki := filepath.Dir(path)
	if err := errors.Join(os.RemoveAll(pki), os.Symlink(filepath.Dir(outside), pki)); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.WriteFileFor(user, path, []byte("new"), 0o600); !uidisolation.IsForeign(err) {
		t.Errorf("along a link: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(outside), "ca.key")); err == nil {
		t.Error("it was written outside")
	}
}
