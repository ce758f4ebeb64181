package etcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
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

// S10: a database that was full is written again after objects were deleted and the management cluster was started again.
func TestDatabaseThatWasFull(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "e")
	cfg := Config{Dir: dir, QuotaBytes: 100 << 20}
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, s)
	value := strings.Repeat("x", 1<<20)
	for n := 0; ; n++ {
		if _, err := c.Put(t.Context(), fmt.Sprint("k", n), value); errors.Is(err, rpctypes.ErrNoSpace) {
			break
		} else if err != nil || n > 400 {
			t.Fatalf("%d: %v", n, err)
		}
	}
	if info, err := os.Stat(DatabaseFile(dir)); err != nil || info.Size() < cfg.QuotaBytes/10*8 {
		t.Errorf("the file of a full database: %v, %v", info, err)
	}
	deleted, err := c.Delete(t.Context(), "k", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compact(t.Context(), deleted.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(t.Context(), "k", "v"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("etcd writes again by itself: %v", err)
	}
	s.Close()
	if s, err = Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if info, err := os.Stat(DatabaseFile(dir)); err != nil || info.Size() > 64<<20 {
		t.Errorf("the space was not returned: %v, %v", info, err)
	}
	put(t, s, "k", "v")
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

// S10: another user of the host who creates the folder first keeps nothing from starting.
func TestSocketFolderOfAnother(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30), "etcd")
	squatted := usualSockets(dir)
	if err := errors.Join(os.Mkdir(squatted, 0o700), os.Chmod(squatted, 0o777)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second removes what the first left
		s, err := Start(t.Context(), Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, "k", "v")
		socket, err := ClientSocket(dir)
		if err != nil || "unix://"+socket != s.Endpoint() || filepath.Dir(socket) == squatted {
			t.Errorf("others find it at %s, %v; it is at %s", socket, err, s.Endpoint())
		}
		s.Close()
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), socketPrefix+"*")); err != nil || len(left) != 1 {
		t.Errorf("folders that are left: %v, %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(dir, socketRecord), []byte(socketPrefix+"../../etc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if socket, err := ClientSocket(dir); err != nil || filepath.Dir(socket) != squatted {
		t.Errorf("a record that leads elsewhere: %s, %v", socket, err)
	}
	if err := os.RemoveAll(squatted); err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !strings.HasPrefix(s.Endpoint(), "unix://"+squatted+"/") {
		t.Errorf("the usual folder is free, and %s is used", s.Endpoint())
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
		"of this program": {os.Geteuid(), false}, "of another control plane": {1_900_000_000, false}, "its own": {1_900_000_000 + 1, true}, "of a person": {os.Geteuid() + 1, true},
	} {
		if os.Geteuid() != 0 && test.owner != os.Geteuid() {
			continue // only root makes folders of others
		}
		if err := errors.Join(os.RemoveAll(folder), createPrivate(folder), os.Chown(folder, test.owner, -1), ClearSockets(dir, 1_900_000_000+1)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(folder); (err == nil) != test.kept {
			t.Errorf("%s: kept %v, %v", name, !test.kept, err)
		}
	}
	if err := errors.Join(os.RemoveAll(folder), ClearSockets(dir, 1_900_000_000), ClearSockets("/short", 1_900_000_000)); err != nil {
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
