package up_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/cli/up"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func run(t *testing.T, dir datadir.Dir, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := up.StatusCommand(term.Env{Out: &out, Now: func() time.Time { return now }, Getenv: func(string) string { return "" }})
	cmd.SetArgs(append([]string{"--data-dir", string(dir)}, args...))
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// used is a data directory that this process holds since two hours.
func used(t *testing.T) *datadir.Handle {
	t.Helper()
	holder := datadir.Holder{PID: os.Getpid(), Host: "here", Since: now.Add(-2 * time.Hour), Version: "v0.1.0"}
	h, err := datadir.Open(datadir.Dir(t.TempDir()), holder)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestStates(t *testing.T) {
	state := func(dir datadir.Dir) up.RunState {
		t.Helper()
		s, err := up.Collect(dir)
		if err != nil {
			t.Fatal(err)
		}
		return s.State
	}
	if got := state(datadir.Dir(t.TempDir())); got != up.Absent {
		t.Errorf("an empty folder is %s", got)
	}
	h := used(t)
	if got := state(h.Dir); got != up.Starting {
		t.Errorf("held, and nothing said yet: %s", got)
	}
	if err := h.WriteRun(datadir.Run{PID: os.Getpid(), Ready: true}); err != nil {
		t.Fatal(err)
	}
	if got := state(h.Dir); got != up.Running {
		t.Errorf("ready: %s", got)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if got := state(h.Dir); got != up.Stopped {
		t.Errorf("not held any more: %s", got)
	}
}

func TestText(t *testing.T) {
	h := used(t)
	defer func() { _ = h.Close() }()
	r := datadir.Run{PID: os.Getpid(), Ready: true, Server: "https://127.0.0.1:6440", KubernetesVersion: "v1.36.3"}
	if err := h.WriteRun(r); err != nil {
		t.Fatal(err)
	}
	folder := processconfig.Folder(h.Path("planes", "default.demo"))
	c := processconfig.Config{
		Cluster: "demo", Version: "v1.36.3", Endpoint: "172.31.0.1:6443",
		ServiceCIDRs: []string{"10.1.0.0/16"}, PodCIDRs: []string{"10.2.0.0/16"},
	}
	if err := c.Save(folder.Config()); err != nil {
		t.Fatal(err)
	}
	lock, _, _, err := datadir.Acquire(folder.Lock(), datadir.Holder{PID: os.Getpid(), Since: now.Add(-5 * time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release() }()
	if err := folder.WriteRun(processconfig.Run{PID: os.Getpid(), Since: now.Add(-5 * time.Minute), Version: "v1.36.3"}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(h.Log()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.Log(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	text := run(t, h.Dir)
	for _, s := range []string{"Running", h.Log(), "for 120m", "Kubernetes v1.36.3", "https://127.0.0.1:6440", h.Kubeconfig(), "MiB", "default.demo", "172.31.0.1:6443", "5m"} {
		if !strings.Contains(text, s) {
			t.Errorf("it does not say %q:\n%s", s, text)
		}
	}
	var s up.Status
	raw := run(t, h.Dir, "-o", "json")
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		t.Fatal(err)
	}
	for _, not := range []string{`"EncryptionKeys"`, `"ready"`} { // a name of the program's own, and what no one has asked
		if strings.Contains(raw, not) {
			t.Errorf("it says %s:\n%s", not, raw)
		}
	}
	if len(s.Planes) != 1 || s.Planes[0].PID != os.Getpid() || s.Planes[0].Memory == 0 || s.Management.Memory == 0 {
		t.Errorf("as JSON: %+v", s)
	}
}

// One that was killed leaves its record, one that was stopped does not.
func TestKilled(t *testing.T) {
	h := used(t)
	if err := h.WriteRun(datadir.Run{PID: 4711, Since: now.Add(-time.Hour), Ready: true}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(h.Log()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.Log(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	text := run(t, h.Dir)
	for _, want := range []string{"Stopped", "4711, begun", "was killed", "the next start continues", h.Log()} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if err := h.ClearRun(); err != nil {
		t.Fatal(err)
	}
	if text := run(t, h.Dir); strings.Contains(text, "killed") {
		t.Errorf("it was stopped:\n%s", text)
	}
}

func TestTextSaysHowToStart(t *testing.T) {
	dir := datadir.Dir(t.TempDir())
	if text := run(t, dir); !strings.Contains(text, "slipway up -d --data-dir "+string(dir)) || !strings.Contains(text, "No hosted control plane runs as a process") {
		t.Errorf("it says:\n%s", text)
	}
}

// The usual data directory need not be named.
func TestTextNamesNoUsualDirectory(t *testing.T) {
	home := t.TempDir()
	var out bytes.Buffer
	cmd := up.StatusCommand(term.Env{Out: &out, Now: func() time.Time { return now }, Getenv: func(name string) string { return map[string]string{"XDG_DATA_HOME": home}[name] }})
	cmd.SetArgs(nil)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "Start it with: slipway up -d\n") {
		t.Errorf("it says:\n%s", out.String())
	}
}

// A manager that works for another cluster has no management cluster of its own.
func TestManagerOfAnotherCluster(t *testing.T) {
	const server = "https://192.0.2.1:6443"
	holder := datadir.Holder{PID: os.Getpid(), Host: "here", Since: now.Add(-2 * time.Hour), Version: "v0.1.0", ManagerOf: server, Working: true}
	h, err := datadir.Open(datadir.Dir(t.TempDir()), holder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	text := run(t, h.Dir)
	for _, want := range []string{"Manager:", "Running", "slipway v0.1.0", server} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	for _, other := range []string{"Management cluster", "Starting", "etcd", "Start it with"} {
		if strings.Contains(text, other) {
			t.Errorf("it says %q:\n%s", other, text)
		}
	}
	var s up.Status
	if err := json.Unmarshal([]byte(run(t, h.Dir, "-o", "json")), &s); err != nil || s.State != up.Running || s.Management.ManagerOf != server {
		t.Errorf("as JSON: %v, %+v", err, s)
	}
}

// A directory without etcd was a manager's: "slipway up" would make a new management cluster of it.
func TestStoppedManager(t *testing.T) {
	h := used(t)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if text := run(t, h.Dir); !strings.Contains(text, "Start it with: slipway up -d --data-dir") {
		t.Errorf("a first start that failed:\n%s", text)
	}
	again, err := datadir.Open(h.Dir, datadir.Holder{PID: os.Getpid(), Host: "here", Since: now, ManagerOf: "https://192.0.2.1:6443", Command: "slipway manager --kubeconfig=k"})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if text := run(t, h.Dir); !strings.Contains(text, "Start it with: slipway manager --kubeconfig=k\n") {
		t.Errorf("with its command:\n%s", text)
	}
	if err := os.MkdirAll(h.Etcd(), 0o700); err != nil {
		t.Fatal(err)
	}
	if text := run(t, h.Dir); !strings.Contains(text, "Start it with: slipway up -d --data-dir") {
		t.Errorf("with etcd:\n%s", text)
	}
}

// S10: a database that fills up is told of before nothing can be written.
func TestDatabaseNearlyFull(t *testing.T) {
	h := used(t)
	path := filepath.Join(h.Dir.Etcd(), "member", "snap", "db")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for size, warns := range map[int64]bool{1 << 30: false, 1700 << 20: true} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil { // without its blocks
			t.Fatal(err)
		}
		if out := run(t, h.Dir); strings.Contains(out, "nearly full: 1700 MiB of 2048 MiB") != warns {
			t.Errorf("%d MiB: %s", size>>20, out)
		}
		s, err := up.Collect(h.Dir)
		if err != nil || s.Database == nil || s.Database.Bytes != size {
			t.Errorf("%d MiB: %+v, %v", size>>20, s.Database, err)
		}
	}
}
