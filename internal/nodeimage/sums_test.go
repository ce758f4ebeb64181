package nodeimage

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/semver"

	"github.com/slipwayhq/slipway/internal/fault"
)

func TestKnownSums(t *testing.T) {
	all := parseSums(knownSums)
	if diff := cmp.Diff(all.String(), knownSums); diff != "" {
		t.Errorf("the file is not sorted, or has a module twice (-want +got):\n%s", diff)
	}
	for about, sum := range all {
		if words := strings.Fields(about); len(words) != 2 || !strings.HasPrefix(words[1], "v") || !strings.HasPrefix(sum, "h1:") || len(sum) != len("h1:")+44 {
			t.Errorf("%s %s is no line of a go.sum", about, sum)
		}
	}
}

// TestPinsHaveChecksums: a pinned module without a known checksum ends the build of the node image.
func TestPinsHaveChecksums(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "images", "node", "pins.txt"))
	if err != nil {
		t.Fatal(err)
	}
	all, pins := parseSums(knownSums), 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		pins++
		if about := strings.TrimSpace(line) + "/go.mod"; all[about] == "" {
			t.Errorf("known.sum has no checksum of %s: copy its lines from go.sum", about)
		}
	}
	if pins == 0 {
		t.Error("no pin was found")
	}
}

func TestSumsOfABuild(t *testing.T) {
	s := parseSums("a v1 h1:a\na v1/go.mod h1:am\n")
	const before = "a v1 h1:forged\nb v2 h1:b\n"
	for name, c := range map[string]struct {
		reason string
		module GoModule
		want   string
	}{
		"sealed": {"nothing but what is known", GoModule{Sealed: true}, "a v1 h1:a\na v1/go.mod h1:am\n"},
		"open":   {"what is known wins over what was there", GoModule{}, "a v1 h1:a\na v1/go.mod h1:am\nb v2 h1:b\n"},
	} {
		if diff := cmp.Diff(c.want, s.initialSums(c.module, before)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, diff)
		}
	}
	grown := s.String() + "b v2 h1:b\n"
	if err := s.check(GoModule{Sealed: true}, grown); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "node image: b v2;") {
		t.Errorf("a module that is not known: %v", err)
	}
	for _, err := range []error{s.check(GoModule{}, grown), s.check(GoModule{Sealed: true}, s.String()),
		s.checkDownload(GoRequirement{"a", "v1"}, "h1:a"), s.checkDownload(GoRequirement{"b", "v2"}, "h1:other")} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := s.checkDownload(GoRequirement{"a", "v1"}, "h1:forged"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("another content of a known module: %v", err)
	}
}

// TestForgedModule: the Go toolchain itself compares what it would compile with what is known, whatever the environment says of
// checksums.
func TestForgedModule(t *testing.T) {
	for _, name := range []string{"GONOSUMDB", "GONOSUMCHECK", "GOPRIVATE", "GOINSECURE"} {
		t.Setenv(name, "*")
	}
	t.Setenv("GOSUMDB", "off")
	const module = "golang.org/x/mod"
	m := GoModule{
		Mod:   "module example.org/forged\n\ngo 1.26.0\n\nrequire " + module + " " + required(t, module) + "\n",
		Files: map[string]string{"main.go": "package main\n\nimport \"golang.org/x/mod/semver\"\n\nfunc main() { println(semver.IsValid(\"v1\")) }\n"},
	}
	tools := GoToolchain{Store: BuildCache{Dir: t.TempDir()}}
	dir, err := tools.writeModule(m)
	if err != nil {
		t.Fatal(err)
	}
	list := command{Dir: dir, Env: goEnvironment(), Args: []string{"go", "list", "-deps", "."}}
	if _, err := list.Run(context.Background()); err != nil {
		t.Fatalf("with what is known: %v", err)
	}
	file := filepath.Join(dir, "go.sum")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line := "\n" + module + " " + required(t, module) + " h1:"
	if !strings.Contains(string(text), line) {
		t.Fatalf("%s is not in the go.sum of the build", line)
	}
	i := strings.Index(string(text), line) + len(line)
	forged := string(text[:i]) + strings.Repeat("A", 43) + "=" + string(text[i+44:])
	if err := os.WriteFile(file, []byte(forged), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := list.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "checksum mismatch") {
		t.Errorf("a module whose checksum is another one was taken: %s %v", out, err)
	}
}

// required is the newest version of a module in what is known.
func required(t *testing.T, module string) string {
	t.Helper()
	newest := ""
	for about := range parseSums(knownSums) {
		path, version, _ := strings.Cut(about, " ")
		if path == module && !strings.HasSuffix(version, "/go.mod") && semver.Compare(version, newest) > 0 {
			newest = version
		}
	}
	if newest == "" {
		t.Fatalf("%s is not known", module)
	}
	return newest
}
