package processconfig_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// What a control plane says of itself that was taken over does not make a program of root connect to elsewhere. Without a user of its own, it is
// believed: it is what this program is.
func TestReadRunOfAControlPlaneThatWasTakenOver(t *testing.T) {
	folder := processconfig.Folder(filepath.Join(t.TempDir(), "a"))
	if err := os.Mkdir(string(folder), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, _, _, err := datadir.Acquire(folder.Lock(), datadir.Holder{PID: 4711, Since: time.Unix(1, 0).UTC()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release() }()
	lies := processconfig.Run{PID: 4711, Version: "\x1b[2J", Local: "192.0.2.1:22", RunMode: "x", Config: "c"}
	honest := processconfig.Run{PID: 4711, Version: "v1.36.3", Local: "127.1.2.3:6443", RunMode: processconfig.RunEtcdOnly, Config: "c"}
	read := func(r processconfig.Run) processconfig.Run {
		t.Helper()
		if err := folder.WriteRun(r); err != nil {
			t.Fatal(err)
		}
		got, alive, err := folder.ReadRun()
		if err != nil || !alive {
			t.Fatalf("alive %v, %v", alive, err)
		}
		return got
	}
	if diff := cmp.Diff(lies, read(lies)); diff != "" {
		t.Errorf("without a user (-want +got):\n%s", diff)
	}
	if err := uidisolation.Unavailable(filepath.Dir(string(folder))); errors.Is(err, uidisolation.ErrNotRoot) {
		return
	}
	user, err := uidisolation.Assign(string(folder))
	if err != nil {
		t.Fatal(err)
	}
	if err := uidisolation.ChownFolder(string(folder), user); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(processconfig.Run{PID: 4711, Config: "c"}, read(lies)); diff != "" {
		t.Errorf("lies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(honest, read(honest)); diff != "" {
		t.Errorf("what it may say (-want +got):\n%s", diff)
	}
	if err := errors.Join(os.Remove(filepath.Join(string(folder), "run.json")), os.Symlink("/etc/passwd", filepath.Join(string(folder), "run.json"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := folder.ReadRun(); err == nil {
		t.Error("a record along a link is read")
	}
}
