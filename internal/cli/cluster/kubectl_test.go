package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   string
		want   kubectlArguments
		err    string
	}{
		"plain":        {"arguments pass as they are", "get pods -A -o wide", kubectlArguments{rest: strings.Fields("get pods -A -o wide")}, ""},
		"data dir":     {"the one flag that is ours, wherever it stands", "get pods --data-dir /d -A", kubectlArguments{rest: strings.Fields("get pods -A"), dataDir: "/d"}, ""},
		"assigned":     {"both spellings", "--data-dir=/d get pods", kubectlArguments{rest: strings.Fields("get pods"), dataDir: "/d"}, ""},
		"in container": {"a program in a container keeps its own flags", "exec p -- etcd --data-dir /x --help", kubectlArguments{rest: strings.Fields("exec p -- etcd --data-dir /x --help")}, ""},
		"kubeconfig":   {"another cluster was named", "--kubeconfig=k get nodes", kubectlArguments{rest: strings.Fields("--kubeconfig=k get nodes"), explicit: true}, ""},
		"server":       {"the short flag as well", "get nodes -s https://x", kubectlArguments{rest: strings.Fields("get nodes -s https://x"), explicit: true}, ""},
		"help":         {"help needs no server", "get --help", kubectlArguments{rest: strings.Fields("get --help"), offline: true}, ""},
		"nothing":      {"kubectl alone prints its help", "", kubectlArguments{offline: true}, ""},
		"config":       {"kubeconfigs are files", "config view", kubectlArguments{rest: strings.Fields("config view"), offline: true}, ""},
		"flag first":   {"the value of a flag is not the command", "-n x config view", kubectlArguments{rest: strings.Fields("-n x config view"), offline: true}, ""},
		"client":       {"the version of the client alone", "version --client", kubectlArguments{rest: strings.Fields("version --client"), offline: true}, ""},
		"incomplete":   {"a flag without its value is a mistake", "get --data-dir", kubectlArguments{}, "needs a directory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseKubectlArguments(strings.Fields(tc.args))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.err)
				}
				return
			}
			if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(kubectlArguments{})); d != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, d)
			}
		})
	}
}

func TestKubeconfig(t *testing.T) {
	base := t.TempDir()
	dir := datadir.Dir(filepath.Join(base, "slipway"))
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.Kubeconfig(), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	running := datadir.Dir(filepath.Join(base, "running"))
	held, err := datadir.Open(running, datadir.Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	if err := os.WriteFile(running.Kubeconfig(), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := term.Env{Getenv: func(name string) string { return map[string]string{"XDG_DATA_HOME": base}[name] }}
	none := term.Env{Getenv: func(name string) string {
		return map[string]string{"XDG_DATA_HOME": "/nonexistent", "HOME": "/nonexistent"}[name]
	}}
	cases := map[string]struct {
		reason string
		env    term.Env
		args   kubectlArguments
		want   string
		err    string
	}{
		"running":        {"the management cluster is the default", e, kubectlArguments{dataDir: string(running)}, running.Kubeconfig(), ""},
		"stopped":        {"kubectl's own message would not say how to go on", e, kubectlArguments{}, "", "is not running; \"slipway up -d\" starts it"},
		"stopped, local": {"files can be looked at all the same", e, kubectlArguments{offline: true}, dir.Kubeconfig(), ""},
		"explicit":       {"the user knows which cluster is meant", e, kubectlArguments{explicit: true}, "", ""},
		"never started":  {"the way to begin", none, kubectlArguments{}, "", "\"slipway up -d\" starts it"},
		"never, local":   {"help is there before anything else", none, kubectlArguments{offline: true}, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := kubectlKubeconfig(tc.env, tc.args)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || fault.KindOf(err) != fault.Unreachable {
					t.Errorf("%s: got %v, want an Unreachable fault with %q", tc.reason, err, tc.err)
				}
				return
			}
			if got != tc.want || err != nil {
				t.Errorf("%s: got %q, %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}
