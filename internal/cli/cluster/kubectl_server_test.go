package cluster

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// The verb is kubectl: against the cluster of a data directory by default, with its exit codes and its plugins.
func TestRunIsKubectl(t *testing.T) {
	binary, err := apiserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	server := apiserver.Start(t, apiserver.Options{})
	plugins := t.TempDir()
	plugin := "#!/bin/sh\necho \"plugin $* with $KUBECONFIG\"\n"
	if err := os.WriteFile(filepath.Join(plugins, "kubectl-hello"), []byte(plugin), 0o755); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		args   string
		input  string
		code   int
		want   string
		// complete asks how the arguments can go on.
		complete bool
	}{
		"data directory": {"the management cluster is the default", "get namespaces --data-dir " + server.Dir, "", 0, "kube-system", false},
		"kubeconfig":     {"a kubeconfig that is named wins", "--kubeconfig " + server.Kubeconfig + " get ns default -o name", "", 0, "namespace/default", false},
		"input":          {"standard input is kubectl's", "create --data-dir=" + server.Dir + " -f -", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"made"}}`, 0, "namespace/made created", false},
		"exit code":      {"so are its errors", "get namespace nothing --data-dir " + server.Dir, "", 1, `namespaces "nothing" not found`, false},
		"plugin":         {"and its plugins, which find the management cluster too", "hello you --data-dir " + server.Dir, "", 0, "plugin you with " + filepath.Join(server.Dir, "kubeconfig"), false},
		"config":         {"and its command for kubeconfigs", "config current-context --data-dir " + server.Dir, "", 0, "slipway", false},
		"not running":    {"a data directory without a cluster says how to start one", "get namespaces --data-dir " + plugins, "", 3, "slipway up -d --data-dir " + plugins, false},
		"completion":     {"shells complete what kubectl completes", "--data-dir " + server.Dir + " get namespace kube-s", "", 0, "kube-system", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"kubectl"}, strings.Fields(tc.args)...)
			if tc.complete {
				args = append([]string{"__complete"}, args...)
			}
			cmd := exec.CommandContext(t.Context(), binary, args...)
			cmd.Env = []string{"PATH=" + plugins + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "KUBECONFIG=/nonexistent"}
			cmd.Stdin = strings.NewReader(tc.input)
			out, err := cmd.CombinedOutput()
			code := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != tc.code || !strings.Contains(string(out), tc.want) {
				t.Errorf("%s: exit code %d, want %d, and %q in:\n%s", tc.reason, code, tc.code, tc.want, out)
			}
		})
	}
}
