package processconfig_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// shown is what messages and paths take of a control plane.
var shown = regexp.MustCompile(`^[0-9A-Za-z.+-]{0,256}$`)

// seeds adds records, and texts that are none.
func seeds(f *testing.F, records ...any) {
	f.Helper()
	for _, r := range records {
		text, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{"", "{}", "[", "null", `{"pid":"x"}`, `{"pid":4711,"since":"9999-12-31T23:59:59-12:00"}`} {
		f.Add([]byte(text))
	}
}

// fuzzFolder is the folder of a control plane with a user of its own, where this test can give it one.
func fuzzFolder(f *testing.F) (folder processconfig.Folder, own bool) {
	f.Helper()
	folder = processconfig.Folder(filepath.Join(f.TempDir(), "a"))
	if err := os.MkdirAll(filepath.Join(string(folder), "restore"), 0o700); err != nil {
		f.Fatal(err)
	}
	if uidisolation.Unavailable(filepath.Dir(string(folder))) != nil {
		return folder, false
	}
	user, err := uidisolation.Assign(string(folder))
	if err == nil {
		err = uidisolation.ChownFolder(string(folder), user)
	}
	if err != nil {
		f.Fatal(err)
	}
	return folder, true
}

func put(t *testing.T, folder processconfig.Folder, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(string(folder), name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// FuzzReadRun: whatever the process of a control plane says of itself, the PID is that of the lock's holder. One with a user of its own sends
// no one to elsewhere than this host, and says nothing that a status does not take.
func FuzzReadRun(f *testing.F) {
	folder, own := fuzzFolder(f)
	holder := datadir.Holder{PID: 4711, Since: time.Unix(1, 0).UTC()}
	lock, _, _, err := datadir.Acquire(folder.Lock(), holder)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = lock.Release() })
	seeds(f, processconfig.Run{PID: 4711, Version: "v1.36.3", Local: "127.1.2.3:6443", RunMode: processconfig.RunEtcdOnly, Config: "c", EncryptionKeys: "a,b"},
		processconfig.Run{PID: 4711, Version: "\x1b[2J", Local: "192.0.2.1:22", RunMode: "x"}, processconfig.Run{PID: 1, Local: "127.0.0.1:1"},
		processconfig.Run{PID: 4711, Local: "[::1%eth0]:1"}, processconfig.Run{PID: 4711, Local: "[::ffff:127.0.0.1]:6443"})
	f.Fuzz(func(t *testing.T, text []byte) {
		put(t, folder, "run.json", text)
		r, alive, err := folder.ReadRun()
		if !alive {
			t.Fatalf("the process lives: %v", err)
		}
		if err != nil {
			if diff := cmp.Diff(processconfig.Run{}, r); diff != "" {
				t.Errorf("an error, and of the record (-want +got):\n%s", diff)
			}
			return
		}
		if r.PID != holder.PID {
			t.Errorf("PID %d is not that of the process that lives", r.PID)
		}
		if !own {
			return
		}
		if a, err := netip.ParseAddrPort(r.Local); r.Local != "" && (err != nil || !a.Addr().IsLoopback()) {
			t.Errorf("its address is %q", r.Local)
		}
		if !shown.MatchString(r.Version) || r.RunMode != "" && r.RunMode != processconfig.RunEtcdOnly && r.RunMode != processconfig.RunOnLoopback {
			t.Errorf("it runs %q, alone %q", r.Version, r.RunMode)
		}
		since, err := json.Marshal(metav1.NewTime(r.Since))
		var read metav1.Time
		if err := errors.Join(err, json.Unmarshal(since, &read)); err != nil {
			t.Errorf("no status takes %s: %v", since, err)
		}
	})
}

// FuzzReadData: whatever a control plane records of its data and its restores is refused, or is what messages and names of folders take, and
// is the same when it is written and read again.
func FuzzReadData(f *testing.F) {
	folder, _ := fuzzFolder(f)
	seeds(f, processconfig.Run{Version: "v1.36.3", EncryptionKeys: "a,b"}, processconfig.Run{Version: "v1.36.3\x1b[2J"},
		processconfig.Restore{ID: "20261125T131500Z", Snapshot: "demo-20261125T130000Z", Version: "v1.36.3", Revision: 7, At: time.Unix(1, 0).UTC()},
		processconfig.Restore{ID: "../../etc", Snapshot: "x"}, processconfig.Restore{ID: "1", Snapshot: "\x1b[2J"}, processconfig.Restore{ID: "1", Version: "x"}, processconfig.Restore{Revision: -1})
	f.Fuzz(func(t *testing.T, text []byte) {
		for name, read := range map[string]func() (processconfig.Restore, error){"restored.json": folder.ReadRestored, "restore/request.json": folder.ReadRestoreRequest} {
			put(t, folder, name, text)
			if r, err := read(); err == nil {
				checkRestore(t, folder, r)
			} else if diff := cmp.Diff(processconfig.Restore{}, r); diff != "" {
				t.Errorf("an error, and of the record (-want +got):\n%s", diff)
			}
			put(t, folder, name, []byte("{}"))
		}
		put(t, folder, "run.json", text)
		d, err := folder.ReadData()
		if err != nil {
			return
		}
		if !shown.MatchString(d.Version) {
			t.Errorf("messages show version %q", d.Version)
		}
		if err := d.Problem("v1.36.3"); err != nil && len(err.Error()) > 1024 {
			t.Errorf("a message of %d bytes", len(err.Error()))
		}
		if err := d.KeysProblem(d.EncryptionKeys, ""); err != nil {
			t.Errorf("its own keys do not open it: %v", err)
		}
	})
}

// checkRestore checks a record of a restore that was read.
func checkRestore(t *testing.T, folder processconfig.Folder, r processconfig.Restore) {
	t.Helper()
	for _, text := range []string{r.ID, r.Snapshot, r.Version} {
		if !shown.MatchString(text) {
			t.Errorf("messages show %q", text)
		}
	}
	if filepath.Base("etcd-before-"+r.ID) != "etcd-before-"+r.ID {
		t.Errorf("the folder of before is elsewhere, by %q", r.ID)
	}
	if err := folder.WriteRestored(r); err != nil {
		t.Fatal(err)
	}
	if again, err := folder.ReadRestored(); err != nil || !again.At.Equal(r.At) {
		t.Errorf("read again: %v, %v", again, err)
	} else if again.At = r.At; again != r {
		t.Errorf("%+v is %+v when it is read again", r, again)
	}
}
