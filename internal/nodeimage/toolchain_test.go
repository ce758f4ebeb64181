package nodeimage

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Nobody else's go.mod decides how Go runs: not in the folder for temporary files, not where the program was started, not above the cache.
// Security S9.
func TestCommandsOfGoRunInAFolderOfTheirOwn(t *testing.T) {
	foreign := t.TempDir()
	for _, text := range []string{"this is not a go.mod", "module x\n\ngo 1.99.0\n\ntoolchain go1.99.0\n"} {
		if err := os.WriteFile(filepath.Join(foreign, "go.mod"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", foreign)
		t.Setenv("GO111MODULE", "off")
		t.Setenv("GOFLAGS", "-mod=nonsense")
		t.Setenv("GOTOOLCHAIN", "go1.99.0")
		t.Chdir(foreign)
		s := BuildCache{Dir: filepath.Join(foreign, "cache"), Progress: t.Output()}
		tools, err := NewToolchain(t.Context(), s)
		if err != nil || !strings.HasPrefix(tools.Version, "go1.") {
			t.Errorf("%q: got version %q, %v", text, tools.Version, err)
		}
		if folder := tools.CacheFolder(t.Context()); !filepath.IsAbs(folder) {
			t.Errorf("%q: the build cache is %q", text, folder)
		}
		info, err := os.Stat(filepath.Join(s.Dir, "go-commands"))
		if err != nil || info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("the folder: %v, %v", info, err)
		}
	}
}

// The versions of a module are found whatever Go they need.
func TestVersionsOfANewerModule(t *testing.T) {
	proxy := t.TempDir()
	at := filepath.Join(proxy, "example.com", "newer", "@v")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	mod := "module example.com/newer\n\ngo 1.99.0\n"
	for name, text := range map[string]string{"list": "v1.0.0\n", "v1.0.0.info": `{"Version":"v1.0.0"}`, "v1.0.0.mod": mod} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOMODCACHE", t.TempDir())
	tools := GoToolchain{Store: BuildCache{Dir: t.TempDir(), Progress: t.Output()}}
	if got, err := tools.Versions(t.Context(), "example.com/newer"); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
}
