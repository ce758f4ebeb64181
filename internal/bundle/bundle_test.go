package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/fault"
)

// write writes a bundle to a store and returns it.
func write(t *testing.T, s Store, version string, files map[string]string) Bundle {
	t.Helper()
	b, err := s.place(func(dir string) error {
		for name, text := range files {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
				return err
			}
		}
		m, err := describe(dir, Manifest{KubernetesVersion: version, Architecture: "amd64", PauseImage: "slipway.dev/pause:3.10"})
		if err != nil {
			return err
		}
		return writeManifest(dir, m)
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func files() map[string]string {
	return map[string]string{"bin/kubelet": "kubelet", "lib/ld.so": "loader", nodeImages: "node", controlPlaneImages: "control plane"}
}

func TestStore(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "bundles")}
	if all, problems, err := s.List(); len(all)+len(problems) > 0 || err != nil {
		t.Fatalf("a store that does not exist is empty: %v %v %v", all, problems, err)
	}
	if _, err := s.Find("v1.36.3", "amd64"); fault.As(err) == nil || fault.As(err).Reason != reasonMissing {
		t.Errorf("%v", err)
	}
	write(t, s, "v1.35.4", files())
	b := write(t, s, "v1.36.3", files())
	all, problems, err := s.List()
	if err != nil || len(problems) > 0 || len(all) != 2 || all[0].KubernetesVersion != "v1.36.3" {
		t.Errorf("the newest comes first: %v %v %v", all, problems, err)
	}
	found, err := s.Find("v1.36.3", "amd64")
	if err != nil || found.Digest != b.Digest {
		t.Errorf("%v %s", err, found.Digest)
	}
	sums := sha256.Sum256(b.Sums())
	if b.Digest != hex.EncodeToString(sums[:]) {
		t.Error("hosts compute the digest from the checksums")
	}
	for _, version := range []string{"../x", "v1.36.3/../..", ""} {
		if _, err := s.Find(version, "amd64"); fault.KindOf(err) != fault.Invalid {
			t.Errorf("version %q: %v", version, err)
		}
	}
	if err := s.Remove(found); err != nil {
		t.Error(err)
	}
	if all, _, _ := s.List(); len(all) != 1 {
		t.Error("the bundle remains")
	}
}

// TestReplacedBundle checks that there is a bundle at each moment of a replacement, and that the drafts of processes that
// were killed are deleted, but not those of others.
func TestReplacedBundle(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	write(t, s, "v1.36.3", files())
	for _, killed := range []string{draftPrefix + "1", draftPrefix + "2/bundle"} { // of an earlier build, and of this one
		if err := os.MkdirAll(filepath.Join(s.Dir, killed), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.Dir, draftPrefix+"2", draftLock), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := files()
	other["bin/kubelet"] = "another kubelet"
	var drafts []string
	_, err := s.place(func(dir string) error {
		if _, err := s.Find("v1.36.3", "amd64"); err != nil {
			t.Errorf("before the replacement: %v", err)
		}
		write(t, s, "v1.35.4", files()) // another process
		drafts, _ = filepath.Glob(filepath.Join(s.Dir, draftPrefix+"*"))
		return os.ErrInvalid // the build fails
	})
	if err == nil || len(drafts) != 1 {
		t.Errorf("drafts during a build: %q %v", drafts, err)
	}
	b := write(t, s, "v1.36.3", other)
	found, err := s.Find("v1.36.3", "amd64")
	if err != nil || found.Digest != b.Digest || found.Verify() != nil {
		t.Errorf("after the replacement: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.Dir, draftPrefix+"*")); len(left) > 0 {
		t.Errorf("drafts remain: %q", left)
	}
	// A directory cannot be removed first: whatever is there at the moment of the crash must be complete.
	from, to := filepath.Join(s.Dir, "from"), filepath.Join(s.Dir, b.name())
	if err := os.Mkdir(from, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := replace(from, to); err != nil {
		t.Fatal(err)
	}
	if old, err := Open(from); err != nil || old.Digest != b.Digest {
		t.Errorf("the previous bundle is deleted after the replacement: %v", err)
	}
}

func TestForNode(t *testing.T) {
	b := write(t, Store{Dir: t.TempDir()}, "v1.36.3", files())
	worker, plane := b.ForNode(false), b.ForNode(true)
	if plane.Digest != b.Digest || worker.Digest == b.Digest || len(worker.Files) != len(b.Files)-1 || len(b.Files) != 4 {
		t.Errorf("a worker needs %d of %d files", len(worker.Files), len(b.Files))
	}
	if again := b.ForNode(false); again.Digest != worker.Digest || worker.Size() != b.Size()-int64(len("control plane")) {
		t.Error("the part for workers must be the same each time")
	}
}

func TestDamagedBundles(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(dir string) error
		opens  bool
	}{
		"missing file": {"sizes are checked when it is opened", func(dir string) error { return os.Remove(filepath.Join(dir, "bin/kubelet")) }, false},
		"other size":   {"sizes are checked when it is opened", func(dir string) error { return os.WriteFile(filepath.Join(dir, "bin/kubelet"), nil, 0o755) }, false},
		"link":         {"a link could lead anywhere", func(dir string) error { return relink(filepath.Join(dir, "bin/kubelet"), "/etc/passwd") }, false},
		"other content": {"content is checked when it is exported", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "bin/kubelet"), []byte("KUBELET"), 0o755)
		}, true},
		"missing manifest": {"nothing is known", func(dir string) error { return os.Remove(filepath.Join(dir, manifestName)) }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := write(t, Store{Dir: t.TempDir()}, "v1.36.3", files())
			if err := tc.change(b.Dir); err != nil {
				t.Fatal(err)
			}
			b, err := Open(b.Dir)
			if tc.opens && err == nil {
				err = b.Export(io.Discard)
			}
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func relink(file, to string) error {
	if err := os.Remove(file); err != nil {
		return err
	}
	return os.Symlink(to, file)
}

func TestExportAndImport(t *testing.T) {
	b := write(t, Store{Dir: t.TempDir()}, "v1.36.3", files())
	var archive bytes.Buffer
	if err := b.Export(&archive); err != nil {
		t.Fatal(err)
	}
	s := Store{Dir: t.TempDir()}
	got, err := s.Import(bytes.NewReader(archive.Bytes()))
	if err != nil || got.Digest != b.Digest || got.Export(io.Discard) != nil {
		t.Fatalf("%v", err)
	}
	if diff := cmp.Diff(b.Manifest, got.Manifest); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(filepath.Join(got.Dir, "bin/kubelet")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the program must be executable: %v %v", info.Mode(), err)
	}
	for _, n := range []int{0, 100, archive.Len() / 2, archive.Len() - 2000} {
		if _, err := (Store{Dir: t.TempDir()}).Import(bytes.NewReader(archive.Bytes()[:n])); fault.KindOf(err) != fault.Invalid {
			t.Errorf("an archive of %d bytes: %v", n, err)
		}
	}
	damaged := bytes.Replace(archive.Bytes(), []byte("loader"), []byte("LOADER"), 1)
	other := Store{Dir: t.TempDir()}
	if _, err := other.Import(bytes.NewReader(damaged)); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a damaged file: %v", err)
	}
	if entries, err := os.ReadDir(other.Dir); err != nil || len(entries) != 1 || entries[0].Name() != ".lock" {
		t.Errorf("a failed import leaves files: %v %v", entries, err)
	}
}

func TestImportRejectsOtherFiles(t *testing.T) {
	b := write(t, Store{Dir: t.TempDir()}, "v1.36.3", files())
	text, err := json.Marshal(b.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []tar.Header{{Name: "../../etc/passwd", Typeflag: tar.TypeReg}, {Name: b.Files[0].Path, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}} {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		if err := w.WriteHeader(&tar.Header{Name: manifestName, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := (Store{Dir: t.TempDir()}).Import(&archive); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", h.Name, err)
		}
	}
}

func TestParseManifest(t *testing.T) {
	sum := strings.Repeat("a", 64)
	file := func(path string) string {
		return `{"path":"` + path + `","size":1,"sha256":"` + sum + `"}`
	}
	manifest := func(files string) string {
		return `{"format":1,"kubernetesVersion":"v1.36.3","architecture":"amd64","pauseImage":"slipway.dev/pause:3.10","files":[` + files + `]}`
	}
	cases := map[string]struct {
		reason, text string
		valid        bool
	}{
		"good":           {"a file", manifest(file("bin/a")), true},
		"deep":           {"a file in a directory", manifest(file("lib/xtables/a.so")), true},
		"parent":         {"a path must not leave the bundle", manifest(file("bin/../../a")), false},
		"absolute":       {"a path is relative", manifest(file("/bin/a")), false},
		"hidden":         {"a path begins with a letter", manifest(file(".ssh/a")), false},
		"other folder":   {"only known directories", manifest(file("etc/a")), false},
		"marker":         {"files of Slipway beside it cannot be replaced", manifest(file("complete")), false},
		"space":          {"paths are words in a list", manifest(file("bin/a b")), false},
		"line break":     {"paths are words in a list", manifest(file(`bin/a\nb`)), false},
		"twice":          {"each path occurs once", manifest(file("bin/a") + "," + file("bin/a")), false},
		"file and dir":   {"a file is no directory", manifest(file("bin/a") + "," + file("bin/a/b")), false},
		"no files":       {"a bundle has files", manifest(""), false},
		"checksum":       {"must be one", strings.Replace(manifest(file("bin/a")), sum, "x", 1), false},
		"size":           {"is not negative", strings.Replace(manifest(file("bin/a")), `"size":1`, `"size":-1`, 1), false},
		"version":        {"becomes the name of a directory", strings.Replace(manifest(file("bin/a")), "v1.36.3", "../x", 1), false},
		"architecture":   {"becomes the name of a directory", strings.Replace(manifest(file("bin/a")), "amd64", "../x", 1), false},
		"image":          {"becomes part of containerd's configuration", strings.Replace(manifest(file("bin/a")), "slipway.dev/pause", `a\"`, 1), false},
		"format":         {"another format", strings.Replace(manifest(file("bin/a")), `"format":1`, `"format":2`, 1), false},
		"not a manifest": {"anything else", "hello", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := parseManifest([]byte(tc.text)); (err == nil) != tc.valid || err != nil && fault.KindOf(err) != fault.Invalid {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"format":1,"kubernetesVersion":"v1.36.3","architecture":"amd64","pauseImage":"a","files":[{"path":"bin/a","size":1,"sha256":"` + strings.Repeat("a", 64) + `"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest(text)
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if !filepath.IsLocal(file.Path) || strings.ContainsAny(file.Path, " \n") {
				t.Errorf("%q", file.Path)
			}
		}
	})
}
