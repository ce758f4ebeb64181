package etcd

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// with runs an etcd with the data of a control plane.
func with(t *testing.T, f processconfig.Folder, do func(*clientv3.Client)) {
	t.Helper()
	server, err := Start(t.Context(), Config{Dir: f.Etcd()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, Logger: zap.NewNop(), DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	do(client)
}

// staged is a control plane with data, of which a snapshot waits to be restored; afterwards one key was changed, another one
// is new.
func staged(t *testing.T) processconfig.Folder {
	t.Helper()
	root, err := os.MkdirTemp("", "slipway-") // short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	f := processconfig.Folder(root)
	with(t, f, func(c *clientv3.Client) {
		putKey(t, c, "kept", "as it was")
		if err := os.Mkdir(f.Restoring(), 0o700); err != nil {
			t.Fatal(err)
		}
		r, err := c.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err = errors.Join(err, os.WriteFile(f.RestoreSnapshot(), content, 0o600)); err != nil {
			t.Fatal(err)
		}
		putKey(t, c, "kept", "changed")
		putKey(t, c, "new", "lost")
	})
	if err := errors.Join(f.WriteRestoreRequest(processconfig.Restore{ID: "r1", Snapshot: "s", Version: "v1.36.3"}), f.WriteRun(processconfig.Run{Version: "v1.36.3", EncryptionMark: "m1"})); err != nil {
		t.Fatal(err)
	}
	return f
}

func putKey(t *testing.T, c *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := c.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// restored fails unless the data is that of the snapshot, with later revisions, and that from before is aside.
func restored(t *testing.T, f processconfig.Folder) {
	t.Helper()
	with(t, f, func(c *clientv3.Client) {
		got, err := c.Get(t.Context(), "", clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "as it was" || got.Header.Revision <= revisionBump {
			t.Errorf("got %v at revision %d", got.Kvs, got.Header.Revision)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		answer := <-c.Watch(ctx, "kept", clientv3.WithRev(2))
		if answer.CompactRevision == 0 {
			t.Errorf("who watches from before is not told to list again: %+v", answer)
		}
	})
	record, err := f.ReadRestored()
	if err != nil || record.ID != "r1" || !record.At.Equal(noon) {
		t.Errorf("record: %+v, %v", record, err)
	}
	if _, err := os.Stat(f.Restoring()); !os.IsNotExist(err) {
		t.Errorf("the snapshot is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(string(f), "etcd-before-r1", "member")); err != nil {
		t.Errorf("the data from before is gone: %v", err)
	}
}

func config() processconfig.Config { return processconfig.Config{Version: "v1.36.3", Restore: "r1"} }

func TestApply(t *testing.T) {
	f := staged(t)
	for range 2 { // the second time nothing happens
		if err := ApplyRestore(f, config(), noon); err != nil {
			t.Fatal(err)
		}
	}
	restored(t, f)
	data, err := f.ReadData()
	if err != nil || data.Restored.SpentMark != "m1" || data.EncryptionMark != "m1" || data.Rewritten("m1") || !data.Rewritten("m2") {
		t.Errorf("what was rewritten before is not in the snapshot: %+v, %v", data, err)
	}
}

// Killed after any step, the next call continues.
func TestApplyContinues(t *testing.T) {
	for name, steps := range map[string]func(f processconfig.Folder) error{
		"half of the new data": func(f processconfig.Folder) error {
			return errors.Join(os.MkdirAll(filepath.Join(restoring(f), "member"), 0o700))
		},
		"the new data is complete": prepare,
		"the old data is aside": func(f processconfig.Folder) error {
			return errors.Join(prepare(f), os.Rename(f.Etcd(), filepath.Join(string(f), "etcd-before-r1")))
		},
		"the data is in its place": func(f processconfig.Folder) error { return errors.Join(prepare(f), swapData(f, "r1")) },
		"recorded": func(f processconfig.Folder) error {
			return errors.Join(prepare(f), swapData(f, "r1"), f.WriteRestored(processconfig.Restore{ID: "r1", At: noon}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := staged(t)
			if err := steps(f); err != nil {
				t.Fatal(err)
			}
			if err := ApplyRestore(f, config(), noon); err != nil {
				t.Fatal(err)
			}
			restored(t, f)
		})
	}
}

// What cannot be restored leaves the data as it was, and says why.
func TestApplyRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(f processconfig.Folder) error
		config processconfig.Config
		says   string
	}{
		"damaged": {func(f processconfig.Folder) error {
			file, err := os.OpenFile(f.RestoreSnapshot(), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = file.WriteAt([]byte("xxxxxxxx"), 20000)
			return errors.Join(err, file.Close())
		}, config(), "data from before is unchanged"},
		"no database": {func(f processconfig.Folder) error { return os.WriteFile(f.RestoreSnapshot(), []byte("hello"), 0o600) }, config(), "use another one"},
		"newer": {func(f processconfig.Folder) error {
			return f.WriteRestoreRequest(processconfig.Restore{ID: "r1", Snapshot: "s", Version: "v1.37.0"})
		}, config(), "newer than v1.36.3"},
		"other keys": {func(f processconfig.Folder) error {
			return f.WriteRestoreRequest(processconfig.Restore{ID: "r1", Snapshot: "s", Version: "v1.36.3", EncryptionKeys: "k"})
		}, config(), "encrypted with other keys"},
		"not there": {func(processconfig.Folder) error { return nil }, processconfig.Config{Version: "v1.36.3", Restore: "r2"}, "not on this host"},
	} {
		t.Run(name, func(t *testing.T) {
			f := staged(t)
			if err := test.change(f); err != nil {
				t.Fatal(err)
			}
			if err := ApplyRestore(f, test.config, noon); err == nil || !strings.Contains(err.Error(), test.says) || fault.KindOf(err) != fault.Invalid {
				t.Errorf("got %v", err)
			}
			with(t, f, func(c *clientv3.Client) {
				if got, err := c.Get(t.Context(), "new"); err != nil || len(got.Kvs) != 1 {
					t.Errorf("the data is not as it was: %v, %v", got, err)
				}
			})
		})
	}
	if err := ApplyRestore(processconfig.Folder(t.TempDir()), processconfig.Config{}, noon); err != nil {
		t.Errorf("nothing asked for: %v", err)
	}
}
