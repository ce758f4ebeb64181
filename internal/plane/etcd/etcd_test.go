package etcd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/ownuser"
)

func put(t *testing.T, s *Server, key, value string) {
	t.Helper()
	c := connect(t, s)
	if _, err := c.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, s *Server) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint()}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestMemberKeepsItsData(t *testing.T) {
	for name, dir := range map[string]string{
		"short path":                 filepath.Join(t.TempDir(), "e"),
		"path too long for a socket": filepath.Join(t.TempDir(), strings.Repeat("long", 30), "etcd"),
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Start(t.Context(), Config{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(s.Endpoint(), "unix:///") {
				t.Errorf("it is reached at %s, which is not a unix socket", s.Endpoint())
			}
			put(t, s, "k", "v")
			watch := connect(t, s).Watch(t.Context(), "k") // Close must not wait for it
			s.Close()
			for range watch {
			}
			s, err = Start(t.Context(), Config{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			got, err := connect(t, s).Get(t.Context(), "k")
			if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "v" {
				t.Errorf("after a restart: %v, %v", got, err)
			}
		})
	}
}

func TestSocketFolderIsPrivate(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	folder, _, err := socketFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, _, err := socketFolder(dir); err != nil || again != folder {
		t.Errorf("the second time: %s, %v", again, err)
	}
	for range 2 {
		if err := createPrivate(folder); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := createPrivate(folder); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a folder that others can enter: %v", err)
	}
}

// A control plane that ran as root, or that had the same name and another user, leaves a folder that the next one could not use.
func TestClearSockets(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	folder, _, err := socketFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		owner int
		kept  bool
	}{
		"of this program": {os.Geteuid(), false}, "of another control plane": {ownuser.First, false}, "its own": {ownuser.First + 1, true}, "of a person": {os.Geteuid() + 1, true},
	} {
		if os.Geteuid() != 0 && test.owner != os.Geteuid() {
			continue // only root makes folders of others
		}
		if err := errors.Join(os.RemoveAll(folder), createPrivate(folder), os.Chown(folder, test.owner, -1), ClearSockets(dir, ownuser.First+1)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(folder); (err == nil) != test.kept {
			t.Errorf("%s: kept %v, %v", name, !test.kept, err)
		}
	}
	if err := errors.Join(os.RemoveAll(folder), ClearSockets(dir, ownuser.First), ClearSockets("/short", ownuser.First)); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
}

func TestFlags(t *testing.T) {
	s, err := Start(t.Context(), Config{Dir: filepath.Join(t.TempDir(), "e"), Flags: []string{"--max-txn-ops=10001"}})
	if err != nil {
		t.Fatal(err)
	}
	if s.etcd.Config().MaxTxnOps != 10001 {
		t.Errorf("max-txn-ops is %d", s.etcd.Config().MaxTxnOps)
	}
	s.Close()
	if _, err := Start(t.Context(), Config{Dir: t.TempDir(), Flags: []string{"--nonsense"}}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an unknown flag: %v", err)
	}
}
