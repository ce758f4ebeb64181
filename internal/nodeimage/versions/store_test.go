package versions

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/fault"
)

func testStore(t *testing.T) Store {
	t.Helper()
	return Store{
		Dir: filepath.Join(t.TempDir(), "kubernetes"), Included: "v1.36.3", Slipway: "v0.1.0", Protocol: 7, Progress: io.Discard,
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	}
}

// fakeBuilder writes a file instead of compiling.
type fakeBuilder struct {
	dir, content string
	err          error
	built        int
}

func (b *fakeBuilder) Build(_ context.Context, v string) (string, string, error) {
	b.built++
	if b.err != nil {
		return "", "", b.err
	}
	file := filepath.Join(b.dir, "program-"+v)
	return file, "go1.26", os.WriteFile(file, []byte(b.content), 0o600)
}

func add(t *testing.T, s Store, versions ...string) {
	t.Helper()
	for _, v := range versions {
		if _, added, err := s.Add(t.Context(), v, &fakeBuilder{dir: t.TempDir(), content: "program of " + v}); err != nil || !added {
			t.Fatalf("%s: added %v, %v", v, added, err)
		}
	}
}

// A release is added once, is found with its program, and is gone when it is removed.
func TestStore(t *testing.T) {
	s := testStore(t)
	if diff := cmp.Diff([]string{"v1.36.3"}, s.Versions()); diff != "" {
		t.Errorf("nothing added: %s", diff)
	}
	add(t, s, "v1.37.2", "1.35.4", "v1.35.10")
	if diff := cmp.Diff([]string{"v1.35.4", "v1.35.10", "v1.36.3", "v1.37.2"}, s.Versions()); diff != "" {
		t.Error(diff)
	}
	program, err := s.Program("v1.35.4")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(program)
	info, err := os.Stat(program)
	if err != nil || string(text) != "program of 1.35.4" || info.Mode().Perm() != 0o500 {
		t.Errorf("%q, %v, %v", text, info.Mode(), err)
	}
	again := &fakeBuilder{}
	if r, added, err := s.Add(t.Context(), "v1.35.4", again); err != nil || added || again.built > 0 || r.Size == 0 {
		t.Errorf("added %v, built %d times, %+v, %v", added, again.built, r, err)
	}
	if r, added, err := s.Add(t.Context(), "v1.36.3", again); err != nil || added || again.built > 0 || !r.Included {
		t.Errorf("included: added %v, built %d times, %+v, %v", added, again.built, r, err)
	}
	if err := s.Remove("v1.35.4", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Program("v1.35.4"); fault.KindOf(err) != fault.Gone || !strings.Contains(err.Error(), "it has v1.35.10, v1.36.3, v1.37.2") {
		t.Errorf("removed: %v", err)
	}
}

func TestWhatCannotBeAdded(t *testing.T) {
	full := fmt.Errorf("write: %w", syscall.ENOSPC)
	for name, test := range map[string]struct {
		reason, version string
		err             error
		kind            fault.Kind
		says            string
	}{
		"no version": {"", "latest", nil, fault.Invalid, "is not a Kubernetes version; write it like v1.36.3"},
		"a path":     {"it would be the name of a folder", "../../v1.35.4", nil, fault.Invalid, "is not a Kubernetes version"},
		"a command":  {"messages name versions in commands", "v1.35.4;id", nil, fault.Invalid, "is not a Kubernetes version"},
		"too old":    {"no one has tried it", "v1.32.9", nil, fault.Invalid, "can run Kubernetes v1.33 to v1.37"},
		"too new":    {"it is unknown what it is like", "v1.38.0", nil, fault.Invalid, "can run Kubernetes v1.33 to v1.37"},
		"v2":         {"", "v2.36.0", nil, fault.Invalid, "can run Kubernetes"},
		"disk full":  {"nothing is left, and it can be repeated", "v1.35.4", full, fault.Invalid, "there is no space left on the disk of"},
		"broken":     {"what the builder says", "v1.35.4", errors.New("no network"), fault.Transient, "no network"},
	} {
		t.Run(name, func(t *testing.T) {
			s := testStore(t)
			_, added, err := s.Add(t.Context(), test.version, &fakeBuilder{dir: t.TempDir(), err: test.err})
			if err == nil || added || fault.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.says) {
				t.Errorf("added %v, %v of kind %s, want %q: %s", added, err, fault.KindOf(err), test.says, test.reason)
			}
			if left, _ := filepath.Glob(filepath.Join(s.Dir, "*v1*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// What a process that was killed has left is not visible, and is removed by the next one.
func TestDraftsOfAKilledProcess(t *testing.T) {
	s := testStore(t)
	draft := filepath.Join(s.Dir, draftPrefix+"123")
	if err := os.MkdirAll(draft, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(draft, programFile), []byte("half"), 0o500); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v1.36.3"}, s.Versions()); diff != "" {
		t.Error(diff)
	}
	add(t, s, "v1.35.4")
	if _, err := os.Stat(draft); !os.IsNotExist(err) {
		t.Errorf("the draft is still there: %v", err)
	}
}

// What cannot be run is listed with the reason, and is replaced when it is added again.
func TestReleasesThatCannotBeRun(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		change func(t *testing.T, s *Store, dir string)
		says   string
		list   bool // it is seen without reading the program
	}{
		"another revision": {"this slipway speaks another one with its programs", func(_ *testing.T, s *Store, _ string) { s.Protocol++ }, "starts it differently", true},
		"no manifest": {"", func(t *testing.T, _ *Store, dir string) {
			if err := os.Remove(filepath.Join(dir, manifestFile)); err != nil {
				t.Fatal(err)
			}
		}, "have changed since they were added", true},
		"half a program": {"", overwrite("half"), "have changed since they were added", true},
		"changed":        {"same size, other bytes", overwrite("PROGRAM of v1.35.4"), "the checksum of the program differs", false},
		"of another host": {"a data directory was copied", func(t *testing.T, _ *Store, dir string) {
			file := filepath.Join(dir, manifestFile)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_ = os.Remove(file)
			if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte(platform()), []byte("plan9/mips")), 0o400); err != nil {
				t.Fatal(err)
			}
		}, "is for plan9/mips, and this host is " + platform(), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := testStore(t)
			add(t, s, "v1.35.4")
			test.change(t, &s, s.folder("v1.35.4"))
			if _, err := s.Program("v1.35.4"); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q: %s", err, test.says, test.reason)
			}
			all, err := s.List()
			if err != nil || len(all) != 2 || (all[0].Problem != "") != test.list {
				t.Errorf("listed: %+v, %v", all, err)
			}
			if !test.list {
				return
			}
			add(t, s, "v1.35.4")
			if _, err := s.Program("v1.35.4"); err != nil {
				t.Errorf("added again: %v", err)
			}
		})
	}
}

func overwrite(content string) func(*testing.T, *Store, string) {
	return func(t *testing.T, _ *Store, dir string) {
		file := filepath.Join(dir, programFile)
		_ = os.Remove(file)
		if err := os.WriteFile(file, []byte(content), 0o500); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRemoveRefuses(t *testing.T) {
	s := testStore(t)
	add(t, s, "v1.35.4")
	for name, test := range map[string]struct {
		version string
		users   []string
		says    string
	}{
		"in use":   {"v1.35.4", []string{"team-a/demo", "team-b/demo"}, "is in use by team-a/demo, team-b/demo; upgrade or delete"},
		"included": {"v1.36.3", nil, "is included in this build"},
		"absent":   {"v1.37.2", nil, "this host does not have Kubernetes v1.37.2; it has v1.35.4, v1.36.3"},
		"a path":   {"../x", nil, "this host does not have"},
	} {
		if err := s.Remove(test.version, test.users); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
	}
	if _, err := s.Program("v1.35.4"); err != nil {
		t.Error(err)
	}
}

// An archive carries a release from host to host; twice exported it is the same.
func TestExportAndImport(t *testing.T) {
	from, to := testStore(t), testStore(t)
	add(t, from, "v1.35.4")
	var first, second bytes.Buffer
	if err := errors.Join(from.Export("v1.35.4", &first), from.Export("v1.35.4", &second)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two exports differ")
	}
	for _, want := range []bool{true, false} {
		if r, added, err := to.Import(bytes.NewReader(first.Bytes()), ""); err != nil || added != want || r.Version != "v1.35.4" {
			t.Errorf("added %v, %+v, %v", added, r, err)
		}
	}
	if program, err := to.Program("v1.35.4"); err != nil || filepath.Dir(filepath.Dir(program)) != to.Dir {
		t.Errorf("%s, %v", program, err)
	}
	for name, v := range map[string]string{"included": "v1.36.3", "absent": "v1.37.2"} {
		if err := from.Export(v, io.Discard); err == nil {
			t.Errorf("%s: exported", name)
		}
	}
}

func TestImportRefuses(t *testing.T) {
	s := testStore(t)
	add(t, s, "v1.35.4")
	var whole bytes.Buffer
	if err := s.Export("v1.35.4", &whole); err != nil {
		t.Fatal(err)
	}
	good := `{"format":1,"kubernetesVersion":"v1.35.4","platform":"` + platform() + `","protocol":7,"programSHA256":"x","programSize":1}`
	for name, test := range map[string]struct {
		reason string
		in     []byte
		says   string
	}{
		"no archive":        {"", []byte("hello"), "not a complete archive"},
		"truncated":         {"a copy that was interrupted", whole.Bytes()[:whole.Len()/2], "not a complete archive"},
		"other entries":     {"", archive(t, "x", "y"), `it has "x" where manifest.json is expected`},
		"path":              {"it would be written elsewhere", archive(t, manifestFile, good, "../../x", "p"), `it has "../../x" where control-plane is expected`},
		"checksum":          {"", archive(t, manifestFile, good, programFile, "p"), "the checksum of the program differs"},
		"more than it says": {"it would fill the disk", archive(t, manifestFile, good, programFile, strings.Repeat("p", 1<<20)), "its program has 1048576 bytes and its manifest names 1"},
		"a huge program":    {"the archive's own word is no limit", archive(t, manifestFile, strings.Replace(good, `"programSize":1}`, `"programSize":1099511627776}`, 1), programFile, "p"), "of at most 1073741824"},
		"another platform":  {"", archive(t, manifestFile, strings.Replace(good, platform(), "linux/s390x", 1)), "is for linux/s390x, and this host is " + platform()},
		"another revision":  {"", archive(t, manifestFile, strings.Replace(good, `"protocol":7`, `"protocol":6`, 1)), "starts it differently"},
		"no version":        {"", archive(t, manifestFile, strings.Replace(good, "v1.35.4", "../x", 1)), "is not a Kubernetes version"},
		"no JSON":           {"", archive(t, manifestFile, "{"), "not a complete archive"},
	} {
		t.Run(name, func(t *testing.T) {
			to := testStore(t)
			_, added, err := to.Import(bytes.NewReader(test.in), "")
			if err == nil || added || fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), test.says) {
				t.Errorf("added %v, %v, want %q: %s", added, err, test.says, test.reason)
			}
			if left, _ := filepath.Glob(filepath.Join(to.Dir, "*")); len(left) > 1 { // the lock
				t.Errorf("left: %v", left)
			}
			if left, _ := filepath.Glob(filepath.Join(to.Dir, draftPrefix+"*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A checksum from another source is compared before anything is added.
func TestImportComparesChecksum(t *testing.T) {
	from, to := testStore(t), testStore(t)
	add(t, from, "v1.35.4")
	var whole bytes.Buffer
	if err := from.Export("v1.35.4", &whole); err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%X", sha256.Sum256(whole.Bytes()))
	if _, added, err := to.Import(bytes.NewReader(append(bytes.Clone(whole.Bytes()), 0)), sum); err == nil || added || !strings.Contains(err.Error(), "nothing was added") {
		t.Errorf("another archive: added %v, %v", added, err)
	}
	if _, err := to.Program("v1.35.4"); err == nil {
		t.Error("the program is there")
	}
	if _, added, err := to.Import(bytes.NewReader(whole.Bytes()), sum); err != nil || !added {
		t.Errorf("added %v, %v", added, err)
	}
}

// archive has files of the given names and contents.
func archive(t testing.TB, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o600, Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestNewestOf(t *testing.T) {
	all := []string{"v1.35.0", "v1.35.4", "v1.35.10", "v1.35.11-rc.1", "v1.36.3"}
	for asked, want := range map[string]string{"v1.35.99": "; the newest release of that minor version is v1.35.10", "v1.34.1": ""} {
		if got := newestOf(all, asked); got != want {
			t.Errorf("%s: %q", asked, got)
		}
	}
}
