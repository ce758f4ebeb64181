package cluster

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

func TestChoose(t *testing.T) {
	names := []string{"a.demo", "a.demo-2", "b.demo", "a.prod-x7k2p", "a.twin-1", "a.twin-2"}
	tests := map[string]struct{ reason, name, namespace, want string }{
		"whole name":    {"it wins over those that begin with it", "demo", "a", "a.demo"},
		"its cluster":   {"a control plane of a class has a suffix", "prod", "", "a.prod-x7k2p"},
		"two places":    {"the namespaces are named", "demo", "", `"demo" matches more than one plane: a/demo, b/demo; use the full name, and -n`},
		"two of a name": {"they are named", "twin", "", "a/twin-1, a/twin-2"},
		"none":          {"what there is is listed", "other", "", `no plane "other" on this host; there are: a/demo, a/demo-2`},
		"part":          {"a part of a name is none", "pro", "", `no plane "pro"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := candidates{"plane", "on this host", names}.choose(tc.name, tc.namespace)
			if err != nil {
				got = fault.UserMessage(err)
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
	if _, err := (candidates{"plane", "on this host", nil}).choose("x", ""); err == nil || err.Error() != "there is no plane on this host" {
		t.Errorf("got %v", err)
	}
}

// A Node goes by its own name, which its machine need not have.
func TestMachineByNode(t *testing.T) {
	all := []backend.Machine{
		{Name: "one", Hostname: "node-1", Owner: backend.Owner{Object: types.NamespacedName{Namespace: "ns", Name: "m1"}}},
		{Name: "two", Owner: backend.Owner{Object: types.NamespacedName{Namespace: "ns", Name: "m2"}}},
	}
	for name, want := range map[string]string{"node-1": "one", "m1": "one", "m2": "two"} {
		if got, err := (logsFlags{}).machine(all, name); err != nil || got.Name != want {
			t.Errorf("%s: %v, got %s, want %s", name, err, got.Name, want)
		}
	}
}

func TestLogsOfFiles(t *testing.T) {
	dir := datadir.Dir(filepath.Join(t.TempDir(), "data"))
	for path, content := range map[string]string{dir.Log(): "1\n2\n3\n", dir.Path("planes", "ns.demo-abc", "log", "control-plane.log"): "plane\n"} {
		if _, err := datadir.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct{ args, want string }{
		"manager":         {"manager --tail 2", "2\n3\n"},
		"control plane":   {"control-plane demo", "plane\n"},
		"no such plane":   {"control-plane other", `no hosted control plane "other" on this host; there are: ns/demo-abc`},
		"never started":   {"manager --data-dir /nonexistent", `"slipway up -d" starts it`},
		"without a place": {"node x", `no management cluster has been started in`},
		"unknown":         {"kubelet", "control-plane, manager, node"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := LogsCommand(term.Env{Out: &out, Err: &out})
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetOut(&out)
			cmd.SetArgs(append([]string{"--data-dir", string(dir)}, strings.Fields(tc.args)...))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				out.WriteString(fault.UserMessage(err))
			}
			if !strings.Contains(out.String(), tc.want) || strings.HasSuffix(tc.want, "\n") && out.String() != tc.want {
				t.Errorf("got %q, want %q", out.String(), tc.want)
			}
		})
	}
}
