package datadir_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

var holder = datadir.Holder{PID: os.Getpid(), Host: "here", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Version: "v1"}

func open(t *testing.T, dir datadir.Dir) *datadir.Handle {
	t.Helper()
	h, err := datadir.Open(dir, holder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func wantReason(t *testing.T, err error, reason string, says ...string) {
	t.Helper()
	f := fault.As(err)
	if f == nil || f.Kind != fault.Invalid || f.Reason != reason {
		t.Fatalf("got %v, want a fault of reason %s", err, reason)
	}
	for _, s := range says {
		if !strings.Contains(f.Message, s) {
			t.Errorf("message %q does not say %q", f.Message, s)
		}
	}
}

func TestOpenKeepsTheInstanceAndTheMode(t *testing.T) {
	dir := datadir.Dir(filepath.Join(t.TempDir(), "deep", "data"))
	h := open(t, dir)
	if len(h.Instance) != 16 {
		t.Errorf("instance %q is not 16 digits", h.Instance)
	}
	info, err := os.Stat(string(dir))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %o, want 700", info.Mode().Perm())
	}
	first := h.Instance
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if again := open(t, dir); again.Instance != first {
		t.Errorf("instance changed from %s to %s", first, again.Instance)
	}
	if id, err := datadir.ReadInstance(dir); err != nil || id != first {
		t.Errorf("ReadInstance: %q, %v", id, err)
	}
}

func TestOpenSaysWhoHoldsTheDirectory(t *testing.T) {
	dir := datadir.Dir(t.TempDir())
	open(t, dir)
	_, err := datadir.Open(dir, holder)
	wantReason(t, err, datadir.ReasonHeld, strconv.Itoa(holder.PID), "on here", "slipway down", "--data-dir")
	state, err := datadir.Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !state.Held || !state.Exists || cmp.Diff(holder, state.Holder) != "" {
		t.Errorf("state: %+v", state)
	}
}

func TestOpenRefuses(t *testing.T) {
	tests := map[string]struct {
		files  map[string]string
		reason string
		says   []string
	}{
		"a newer format":       {map[string]string{"version": magic + "2\n"}, datadir.ReasonFormat, []string{`"2"`, "up to 1", "--data-dir"}},
		"an unreadable format": {map[string]string{"version": magic + "what\n"}, datadir.ReasonFormat, []string{`"what"`}},
		"files of others":      {map[string]string{"thesis.txt": "x"}, datadir.ReasonForeign, []string{"thesis.txt", "--data-dir"}},
		"a project":            {map[string]string{"version": "1\n", "main.go": "x"}, datadir.ReasonForeign, []string{"--data-dir"}}, // M6
		"somebody's lock":      {map[string]string{"lock": "", "instance": "x", "data": "x"}, datadir.ReasonForeign, []string{"--data-dir"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := datadir.Dir(t.TempDir())
			for file, content := range test.files {
				if err := os.WriteFile(dir.Path(file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(string(dir), 0o755); err != nil {
				t.Fatal(err)
			}
			_, err := datadir.Open(dir, holder)
			wantReason(t, err, test.reason, test.says...)
			if info, err := os.Stat(string(dir)); err != nil || test.reason == datadir.ReasonForeign && info.Mode().Perm() != 0o755 {
				t.Errorf("mode %o: a folder of others was changed (%v)", info.Mode(), err)
			}
			for file, content := range test.files {
				if got, err := os.ReadFile(dir.Path(file)); err != nil || string(got) != content {
					t.Errorf("%s was changed to %q (%v)", file, got, err)
				}
			}
		})
	}
}

func TestOpenSaysThatADirectoryCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := datadir.Open(datadir.Dir(filepath.Join(file, "below")), holder)
	wantReason(t, err, datadir.ReasonUnusable, "make it writable", "--data-dir")
}

func TestLockIsAskedAboutWithoutBeingTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if _, held, err := datadir.Probe(path); held || err != nil {
		t.Fatalf("a missing lock: held %v, %v", held, err)
	}
	l, _, held, err := datadir.Acquire(path, holder)
	if err != nil || held {
		t.Fatalf("held %v, %v", held, err)
	}
	for range 3 {
		got, held, err := datadir.Probe(path)
		if err != nil || !held || got.PID != holder.PID {
			t.Fatalf("probe: %+v, held %v, %v", got, held, err)
		}
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if _, held, err := datadir.Probe(path); held || err != nil {
		t.Fatalf("after release: held %v, %v", held, err)
	}
}

func TestRunIsShownOnlyOfTheProcessThatHolds(t *testing.T) {
	dir := datadir.Dir(t.TempDir())
	h := open(t, dir)
	run := datadir.Run{PID: holder.PID, Since: holder.Since, Server: "https://127.0.0.1:6440", Ready: true}
	if err := h.WriteRun(run); err != nil {
		t.Fatal(err)
	}
	state, err := datadir.Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	if state.Run == nil || cmp.Diff(run, *state.Run) != "" {
		t.Errorf("run: %+v", state.Run)
	}
	run.PID++ // left by a process that was killed
	if err := h.WriteRun(run); err != nil {
		t.Fatal(err)
	}
	if state, err = datadir.Inspect(dir); err != nil || state.Run != nil {
		t.Errorf("the run of another process is shown: %+v, %v", state.Run, err)
	}
	if err := errors.Join(h.ClearRun(), h.ClearRun()); err != nil {
		t.Errorf("clear twice: %v", err)
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	write := func(data string, mode os.FileMode, want bool) {
		t.Helper()
		changed, err := datadir.WriteFile(path, []byte(data), mode)
		if err != nil || changed != want {
			t.Errorf("write %q %o: changed %v, want %v (%v)", data, mode, changed, want, err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("mode: %v, %v", info.Mode(), err)
		}
	}
	write("one", 0o600, true)
	write("one", 0o600, false)
	write("one", 0o644, true)
	write("two", 0o644, true)
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files left, want one (%v)", len(entries), err)
	}
}

func TestDefault(t *testing.T) {
	tests := map[string]struct {
		env  map[string]string
		want datadir.Dir
	}{
		"XDG_DATA_HOME":          {map[string]string{"XDG_DATA_HOME": "/x", "HOME": "/h"}, "/x/slipway"},
		"home":                   {map[string]string{"HOME": "/h"}, "/h/.local/share/slipway"},
		"relative XDG_DATA_HOME": {map[string]string{"XDG_DATA_HOME": "x", "HOME": "/h"}, "/h/.local/share/slipway"},
	}
	for name, test := range tests {
		got, err := datadir.Default(func(k string) string { return test.env[k] })
		if err != nil || got != test.want {
			t.Errorf("%s: %s, want %s (%v)", name, got, test.want, err)
		}
	}
}

// magic is how the file version of a data directory begins.
const magic = "slipway data directory, format "

// M6: a folder that all users write to keeps its mode.
func TestOpenLeavesASharedFolderAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	_, err := datadir.Open(datadir.Dir(dir), holder)
	wantReason(t, err, datadir.ReasonForeign, "shared by several users")
	if info, err := os.Stat(dir); err != nil || info.Mode()&(0o777|os.ModeSticky) != 0o777|os.ModeSticky {
		t.Errorf("mode %s, %v", info.Mode(), err)
	}
}

// A directory of the first format goes on, and is marked from then on; so does one whose first start was interrupted.
func TestOpenTakesOlderDirectories(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"first format": {"version": "1\n", "instance": "0123456789abcdef\n", "lock": "{}", "pki": "x"},
		"interrupted":  {"lock": "", ".probe.12": ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := datadir.Dir(t.TempDir())
			for file, content := range files {
				if err := os.WriteFile(dir.Path(file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			open(t, dir)
			if data, err := os.ReadFile(dir.Path("version")); err != nil || string(data) != magic+"1\n" {
				t.Errorf("version %q, %v", data, err)
			}
		})
	}
}

// H9: which versions go on with what which others wrote.
func TestRecordVersions(t *testing.T) {
	v := func(slipway, kubernetes, etcd string) datadir.Versions {
		return datadir.Versions{Slipway: slipway, Kubernetes: kubernetes, Etcd: etcd}
	}
	for name, test := range map[string]struct {
		before, now datadir.Versions
		reason      string
		says        string
	}{
		"the same":                   {v("v0.2.0", "v1.36.3", "3.6.8"), v("v0.2.0", "v1.36.3", "3.6.8"), "", ""},
		"a patch":                    {v("v0.2.0", "v1.36.3", "3.6.8"), v("v0.2.1", "v1.36.4", "3.6.9"), "", ""},
		"a patch taken back":         {v("v0.2.1", "v1.36.4", "3.6.9"), v("v0.2.0", "v1.36.3", "3.6.8"), "", ""},
		"the next minor":             {v("v0.2.0", "v1.36.3", "3.6.8"), v("v0.3.0", "v1.37.0", "3.7.0"), "", ""},
		"a skipped minor":            {v("v0.2.0", "v1.36.3", "3.6.8"), v("v0.4.0", "v1.38.0", "3.6.8"), datadir.ReasonSkipped, "start it once with a slipway that has Kubernetes 1.37"},
		"a skipped minor of etcd":    {v("v0.2.0", "v1.36.3", "3.6.8"), v("v0.3.0", "v1.36.3", "3.8.0"), datadir.ReasonSkipped, "etcd 3.7"},
		"an older Kubernetes":        {v("v0.2.0", "v1.37.0", "3.6.8"), v("v0.2.0", "v1.36.3", "3.6.8"), datadir.ReasonFormat, "Kubernetes v1.37.0"},
		"an older etcd":              {v("v0.2.0", "v1.36.3", "3.6.8"), v("v0.2.0", "v1.36.3", "3.5.1"), datadir.ReasonFormat, "etcd 3.6.8"},
		"an older slipway":           {v("v0.3.0", "v1.36.3", "3.6.8"), v("v0.2.0", "v1.36.3", "3.6.8"), datadir.ReasonFormat, "use slipway v0.3.0 or a newer one"},
		"releases of slipway may go": {v("v0.2.0", "v1.36.3", "3.6.8"), v("v0.9.0", "v1.36.3", "3.6.8"), "", ""},
		"a build without a version":  {v("v0.3.0", "v1.36.3", "3.6.8"), v("v0.0.0-dev", "v1.36.3", "3.6.8"), "", ""},
		"nothing recorded":           {v("", "", ""), v("v0.2.0", "v1.36.3", "3.6.8"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := datadir.Dir(t.TempDir())
			if err := datadir.RecordVersions(dir, test.before); err != nil {
				t.Fatal(err)
			}
			err := datadir.RecordVersions(dir, test.now)
			if test.reason == "" {
				if err != nil {
					t.Fatal(err)
				}
				err = datadir.RecordVersions(dir, v("v9.0.0", "v1.99.0", "3.6.0"))
				wantReason(t, err, datadir.ReasonSkipped, test.now.Kubernetes) // what was recorded
				return
			}
			wantReason(t, err, test.reason, test.says, "--data-dir")
			if err := datadir.RecordVersions(dir, test.before); err != nil {
				t.Errorf("the version that wrote it is refused now: %v", err)
			}
		})
	}
}

// M6: what is deleted is ours by name.
func TestRemove(t *testing.T) {
	dir := datadir.Dir(filepath.Join(t.TempDir(), "data"))
	h := open(t, dir)
	for _, file := range []string{"pki/ca.key", "etcd/member/x", "planes/a/run.json", "balancers/a/members.json", "images/a/b/c.tar", "simulated/a", "kubernetes/v1.35.4/control-plane", "log/slipway.log", "kubeconfig", "thesis.txt", ".probe.1", "flags.json", ".flags.json.1", "encrypted-with.json"} {
		if _, err := datadir.WriteFile(dir.Path(file), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left, err := h.Remove()
	if diff := cmp.Diff([]string{"thesis.txt"}, left); diff != "" || err != nil {
		t.Errorf("%v, left %s", err, diff)
	}
	if err := os.Remove(dir.Path("thesis.txt")); err != nil {
		t.Fatal(err)
	}
	if left, err := open(t, dir).Remove(); len(left) > 0 || err != nil {
		t.Errorf("%v, left %s", err, left)
	}
	if _, err := os.Stat(string(dir)); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

// TestRemoveDeletesEachPath also opens the directory before, because some paths exist before the first start.
func TestRemoveDeletesEachPath(t *testing.T) {
	dir := datadir.Dir(filepath.Join(t.TempDir(), "data"))
	for _, early := range []string{dir.Kubernetes(), dir.Bundles()} {
		if err := os.MkdirAll(filepath.Join(early, "v1.36.3"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h := open(t, dir)
	value, paths := reflect.ValueOf(dir), 0
	for i := range value.NumMethod() {
		path, isPath := value.Method(i).Interface().(func() string)
		if !isPath || path() == dir.Lock() {
			continue
		}
		paths++
		if err := os.MkdirAll(path(), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := h.Remove(); len(left) > 0 || err != nil || paths < 15 {
		t.Errorf("%d paths: %v remain, %v", paths, left, err)
	}
}

// Others read what is said of the holder while it is replaced, by more and by less.
func TestSay(t *testing.T) {
	h, err := datadir.Open(datadir.Dir(t.TempDir()), datadir.Holder{PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	said := make(chan error)
	go func() {
		for i := range 1000 {
			if err := h.UpdateHolder(datadir.Holder{PID: 1, Command: strings.Repeat("x", i%7*100)}); err != nil {
				said <- err
			}
		}
		close(said)
	}()
	for reading := true; reading; {
		select {
		case err := <-said:
			if err != nil {
				t.Fatal(err)
			}
			reading = false
		default:
			if holder, held, err := datadir.Probe(h.Lock()); err != nil || !held || holder.PID != 1 {
				t.Fatalf("%+v, %t, %v", holder, held, err)
			}
		}
	}
	if err := os.Truncate(h.Lock(), 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := h.UpdateHolder(datadir.Holder{PID: 2}); err != nil {
		t.Fatal(err)
	}
	if holder, _, err := datadir.Probe(h.Lock()); err != nil || holder.PID != 2 {
		t.Errorf("over what is nothing of ours: %+v, %v", holder, err)
	}
}

// On a full disk, the state of the supervisor is written into the existing file.
func TestOverwriteJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "supervision.json")
	if err := datadir.OverwriteJSON(path, datadir.Supervision{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is created: %v", err)
	}
	if err := datadir.WriteJSON(path, datadir.Supervision{PID: 1, LastExit: "a long text of the previous exit", Waiting: "another long text"}); err != nil {
		t.Fatal(err)
	}
	want := datadir.Supervision{PID: 1, Restarts: 1, LastExit: "the disk was full"}
	if err := datadir.OverwriteJSON(path, want); err != nil {
		t.Fatal(err)
	}
	var got datadir.Supervision
	if _, err := datadir.ReadJSON(path, &got); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}
