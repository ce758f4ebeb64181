package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/cli"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/policy"
)

func runCLI(t *testing.T, args ...string) (code int, out, said string) {
	t.Helper()
	e := term.System()
	var stdout, stderr bytes.Buffer
	e.Out, e.Err = &stdout, &stderr
	code = cli.Run(t.Context(), args, e)
	return code, stdout.String(), stderr.String()
}

// A configuration file with mistakes starts nothing, and all of them are named.
func TestConfigurationFileIsStrict(t *testing.T) {
	file, data := filepath.Join(t.TempDir(), "slipway.yaml"), filepath.Join(t.TempDir(), "data")
	text := "apiVersion: config.slipway.dev/v1alpha1\nkind: Configuration\nmanager: {memoryMiB: 1}\nmaxima: {replicas: -1}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"up"}, {"up", "-d"}, {"up", "--print-config"}, {"manager", "--kubeconfig", "/none"}, {"manager", "--print-config"}} {
		code, out, said := runCLI(t, append(args, "--config", file, "--data-dir", data)...)
		if code != cli.ExitInvalid || out != "" || !strings.Contains(said, "manager.memoryMiB is 1") || !strings.Contains(said, "maxima.replicas is -1") {
			t.Errorf("%v: exit code %d, %q, %q", args, code, out, said)
		}
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("something was started: %v", err)
	}
	code, _, said := runCLI(t, "up", "--config", filepath.Join(t.TempDir(), "none"), "--data-dir", data)
	if code != cli.ExitInvalid || !strings.Contains(said, "no such file") {
		t.Errorf("a file that is not there: exit code %d, %q", code, said)
	}
}

// What --print-config prints is a file that --config takes, and says the same.
func TestPrintedConfiguration(t *testing.T) {
	for _, verb := range []string{"up", "manager"} {
		code, defaults, said := runCLI(t, verb, "--print-config")
		if code != cli.ExitOK {
			t.Fatalf("%s: exit code %d: %s", verb, code, said)
		}
		file := filepath.Join(t.TempDir(), "slipway.yaml")
		changed := strings.Replace(defaults, "cpus: 0", "cpus: 3", 1)
		if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, again, _ := runCLI(t, verb, "--print-config", "--config", file); again != changed {
			t.Errorf("%s: it prints\n%s\nfor\n%s", verb, again, changed)
		}
		if c, err := policy.Parse([]byte(changed)); err != nil || c.Nodes.CPUs != 3 {
			t.Errorf("%+v, %v", c.Nodes, err)
		}
	}
}
