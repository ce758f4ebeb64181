package recovery

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// etcdManifest is what kubeadm writes, as far as the program reads it.
const etcdManifest = `spec:
  containers:
  - command:
    - etcd
    - --data-dir=%s
    - --initial-advertise-peer-urls=https://172.18.0.2:2380
    - --name=n-a
    - --listen-metrics-urls=http://127.0.0.1:2381
`

// node is a folder in which the program runs as it does on a node. The programs that it calls are replaced.
type node struct {
	t    *testing.T
	root string
}

// newNode has the manifest, the data, and these programs beside those that do nothing.
func newNode(t *testing.T, programs map[string]string) node {
	n := node{t, t.TempDir()}
	all := map[string]string{"sleep": "", "systemctl": "", "timeout": "", "pgrep": "exit 1", "pkill": "exit 1"}
	for name, text := range programs {
		all[name] = text
	}
	for name, text := range all {
		n.write("bin/"+name, "#!/bin/bash\n"+text+"\n", 0o755)
	}
	n.write("data/member/wal/0", "written", 0o600)
	n.write("etc/kubernetes/manifests/etcd.yaml", n.manifest(), 0o600)
	return n
}

func (n node) manifest() string { return fmt.Sprintf(etcdManifest, n.root+"/data") }

func (n node) write(name, text string, mode os.FileMode) {
	n.t.Helper()
	file := filepath.Join(n.root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		n.t.Fatal(err)
	}
}

func (n node) read(name string) string {
	data, err := os.ReadFile(filepath.Join(n.root, name))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// rebuild runs the program, and returns its result.
func (n node) rebuild(id string) string {
	n.t.Helper()
	if out, code := n.run(Program(EtcdOrder{ID: id, Step: Rebuild})); code > 1 {
		n.t.Fatalf("%d: %s", code, out)
	}
	return strings.TrimSpace(n.read("/var/lib/slipway/etcd-rebuild-" + id + "/result"))
}

// run runs a program on the node.
func (n node) run(program string) (out string, code int) {
	n.t.Helper()
	for _, folder := range []string{"/etc/kubernetes", "/var/lib/slipway", "/run/slipway"} {
		program = strings.ReplaceAll(program, folder, n.root+folder)
	}
	cmd := exec.Command("bash", "-s")
	cmd.Stdin = strings.NewReader(program)
	cmd.Env = []string{"PATH=" + n.root + "/bin:" + os.Getenv("PATH"), "NODE=" + n.root}
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		n.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

const manifestFile = "/etc/kubernetes/manifests/etcd.yaml"

// A rebuild that fails leaves what kubelet starts etcd from as it was, so that another one can be tried.
func TestRebuildFails(t *testing.T) {
	for name, tc := range map[string]struct {
		programs map[string]string
		manifest string // empty: as it is
		want     string
	}{
		"etcd does not stop":  {map[string]string{"pgrep": `[ "$1" = -x ]`}, "", "failed etcd does not stop"},
		"no room for a copy":  {map[string]string{"cp": `[ "$1" != -a ] && exec /bin/cp "$@"`}, "", "failed its data cannot be copied"},
		"etcd is not started": {nil, "", "failed kubelet does not start etcd"},
		"another command":     {nil, "spec: {containers: [{command: [sh]}]}\n    - --data-dir=DATA\n", "failed the command of etcd"},
	} {
		n := newNode(t, tc.programs)
		want := n.manifest()
		if tc.manifest != "" {
			want = strings.ReplaceAll(tc.manifest, "DATA", n.root+"/data")
			n.write(manifestFile, want, 0o600)
		}
		if got := n.rebuild(id); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %q", name, got)
		}
		if got := n.read(manifestFile); got != want {
			t.Errorf("%s: the manifest is %s", name, got)
		}
		if got := n.read("data/member/wal/0"); got != "written" {
			t.Errorf("%s: the data is %s", name, got)
		}
		if got := n.rebuild("20261125T140000Z"); strings.Contains(got, "there is no ") {
			t.Errorf("%s: another one: %q", name, got)
		}
	}
}

// One that succeeds starts etcd once with the flag and then without, and keeps a copy of the data.
func TestRebuildSucceeds(t *testing.T) {
	started := `manifest=$NODE` + manifestFile + `
case "$*" in
*force*) grep -q -- --force-new-cluster "$manifest" && echo forced >>"$NODE/forced";;
*) [ -e "$manifest" ];;
esac`
	n := newNode(t, map[string]string{"pgrep": started, "timeout": `echo '{"health":"true"}'`})
	if got := n.rebuild(id); got != "done" {
		t.Fatalf("%q: %s", got, n.read("/var/lib/slipway/etcd-rebuild-"+id+"/log"))
	}
	if n.read(manifestFile) != n.manifest() || n.read("data-before-"+id+"/member/wal/0") != "written" || !strings.HasPrefix(n.read("forced"), "forced") {
		t.Errorf("manifest %s, copy %s, forced %s", n.read(manifestFile), n.read("data-before-"+id+"/member/wal/0"), n.read("forced"))
	}
	if err := os.Remove(filepath.Join(n.root, "forced")); err != nil {
		t.Fatal(err)
	}
	if got := n.rebuild(id); got != "done" || strings.HasPrefix(n.read("forced"), "forced") {
		t.Errorf("once more: %q, it forced etcd again", got)
	}
}
