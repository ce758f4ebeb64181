package container

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/local/backend"
)

// A bootstrap that starts is at no moment one that was interrupted, for which the machine would be recreated: whatever
// runs between two commands of its program finds the mark that it runs no later than the mark that it has started.
func TestStartOfABootstrapIsNoInterruption(t *testing.T) {
	root := t.TempDir()
	watched := filepath.Join(root, "seen")
	program := runProgram(backend.Script{Sentinel: "/run/sentinel", Timeout: 1})
	program = strings.NewReplacer("/run/", root+"/run/", "/var/", root+"/var/").Replace(program)
	at := func(path string) string { return root + path }
	for _, folder := range []string{"/run/slipway", "/bin"} {
		if err := os.MkdirAll(at(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mkdir := "#!/bin/sh\nPATH=${PATH#*:} mkdir \"$@\" || exit\n" +
		"if [ -e " + at(startedMark) + " ] && [ ! -e " + at(runningMark) + " ]; then echo interrupted >>" + watched + "; fi\n"
	for path, content := range map[string]string{at("/bin/mkdir"): mkdir, at(scriptFile): "exit 0\n"} {
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", program)
	cmd.Env = []string{"PATH=" + at("/bin") + ":" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(at(resultFile)); err != nil {
		t.Errorf("the program has run: %v", err)
	}
	if seen, err := os.ReadFile(watched); err == nil {
		t.Errorf("it was %s", seen)
	}
}
