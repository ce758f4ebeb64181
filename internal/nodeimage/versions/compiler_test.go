package versions

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/nodeimage"
)

// Without a toolchain, without a proxy, or where there is no such release, the message says what to do.
func TestWhyNothingIsCompiled(t *testing.T) {
	local, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	// A proxy in a folder: it has two releases of Kubernetes, whose source it does not have.
	proxy := t.TempDir()
	write(t, filepath.Join(proxy, "k8s.io/kubernetes/@v/list"), "v1.34.1\nv1.34.3\n")
	write(t, filepath.Join(proxy, "k8s.io/kubernetes/@v/v1.34.3.info"), `{"Version":"v1.34.3"}`)
	write(t, filepath.Join(proxy, "k8s.io/kubernetes/@v/v1.34.3.mod"), "module k8s.io/kubernetes\n")
	write(t, filepath.Join(proxy, "k8s.io/kubernetes/@v/v1.34.3.zip"), "not a zip file")
	for name, test := range map[string]struct {
		path, proxy string
		version     string
		kind        fault.Kind
		says        string
	}{
		"no Go":           {t.TempDir(), "off", "v1.34.1", fault.Invalid, "needs the Go toolchain"},
		"no proxy":        {filepath.Dir(local), "file://" + t.TempDir() + "/none", "v1.34.1", fault.Unreachable, "the Go module proxy does not respond"},
		"no such release": {filepath.Dir(local), "file://" + proxy, "v1.34.99", fault.Invalid, "there is no Kubernetes v1.34.99; the newest release of that minor version is v1.34.3"},
		"broken source":   {filepath.Dir(local), "file://" + proxy, "v1.34.3", fault.Transient, "downloading the source of Kubernetes v1.34.3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", test.path)
			t.Setenv("GOPROXY", test.proxy)
			t.Setenv("GOFLAGS", "-modcacherw")
			t.Setenv("GONOSUMDB", "*")
			t.Setenv("GOMODCACHE", t.TempDir())
			c := Compiler{Sources: fstest.MapFS{}, Package: "x", CacheDir: t.TempDir(), Progress: os.Stderr}
			_, _, err := c.Build(t.Context(), test.version)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
			if test.kind != fault.Transient && fault.KindOf(err) != test.kind {
				t.Errorf("kind %s, want %s", fault.KindOf(err), test.kind)
			}
		})
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What a program is made from are the sources without tests, and it is made again when they change.
func TestFiles(t *testing.T) {
	c := Compiler{Sources: fstest.MapFS{"a/a.go": {Data: []byte("package a")}, "a/a_test.go": {Data: []byte("x")}, "a/b.txt": {Data: []byte("x")}}}
	files, err := c.files()
	if err != nil || len(files) != 1 || files["a/a.go"] != "package a" {
		t.Errorf("%v, %v", files, err)
	}
	one, other := nodeimage.GoModule{Files: files}, nodeimage.GoModule{Files: map[string]string{"a/a.go": "package b"}}
	if (nodeimage.GoToolchain{}).Key(nodeimage.GoProgram{Module: one}) == (nodeimage.GoToolchain{}).Key(nodeimage.GoProgram{Module: other}) {
		t.Error("another source has the same key")
	}
}

// A build that is interrupted says so, not that it failed.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := (Compiler{Sources: fstest.MapFS{}, CacheDir: t.TempDir(), Progress: os.Stderr}).Build(ctx, "v1.34.1"); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}
