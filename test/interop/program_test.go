package interop

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The programs are built once for all tests.
var programs sync.Map // set by tool: a name and the function that finds it

// tool builds a program of the reference, as go.mod names it, and returns its path.
func tool(t *testing.T, name string) string {
	t.Helper()
	find, _ := programs.LoadOrStore(name, sync.OnceValues(func() (string, error) {
		out, err := exec.CommandContext(context.Background(), "go", "tool", "-n", name).Output()
		return strings.TrimSpace(string(out)), err
	}))
	path, err := find.(func() (string, error))()
	if err != nil {
		t.Fatalf("building %s of the reference: %v", name, err)
	}
	return path
}

// slipway is the program under test: SLIPWAY_BIN, or what `make build` writes.
func slipway(t *testing.T) string {
	t.Helper()
	path := os.Getenv("SLIPWAY_BIN")
	if path == "" {
		path = "../../bin/slipway"
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("there is no slipway to test, run make build: %v", err)
	}
	return path
}

// home is where programs are run: a folder for their configuration, and the environment.
type home struct {
	folder string
	// more are variables of the environment.
	more []string
}

func newHome(t *testing.T, more ...string) home {
	t.Helper()
	return home{t.TempDir(), more}
}

// write writes a file of the home, and returns its path.
func (h home) write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(h.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type result struct {
	out, said string
	err       error
}

// run runs a program, with nothing of the environment of the test but the path.
func (h home) run(ctx context.Context, program string, args ...string) result {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.folder, "XDG_CONFIG_HOME=" + filepath.Join(h.folder, "config"),
		"XDG_DATA_HOME=" + filepath.Join(h.folder, "data"), "CLUSTERCTL_DISABLE_VERSIONCHECK=true",
	}, h.more...)
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	return result{out.String(), said.String(), err}
}

// must runs a program that has to succeed, and returns what it printed.
func (h home) must(t *testing.T, program string, args ...string) string {
	t.Helper()
	r := h.run(t.Context(), program, args...)
	if r.err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(program), strings.Join(args, " "), r.err, r.out, r.said)
	}
	return r.out
}
