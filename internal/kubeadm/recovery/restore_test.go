package recovery

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	toStage   = EtcdOrder{ID: id, Step: Stage, Snapshot: snapshot}
	toRestore = EtcdOrder{ID: id, Step: Restore}
)

const restoreState = "/var/lib/slipway/etcd-restore-" + id

// tool makes data of a snapshot, as slipway does on a node: it fails where the snapshot is damaged, and leaves half of the data then.
const tool = `#!/bin/bash
echo "$*" >>"$NODE/tool"
while [ $# -gt 0 ]; do case "$1" in --snapshot) in=$2;; --data-dir) out=$2;; esac; shift; done
mkdir -p "$out/member/wal"
grep -q damaged "$in" && { echo "the snapshot is damaged"; exit 1; }
cp "$in" "$out/member/wal/0"
`

// sent is a node to which a snapshot and the tool were sent.
func sent(t *testing.T, content string, programs map[string]string) node {
	n := newNode(t, programs)
	n.write(restoreState+"/"+SnapshotFile, content, 0o600)
	n.write(restoreState+"/"+RestoreCommand, tool, 0o700)
	return n
}

// running: etcd runs while its manifest is there, and answers.
var running = map[string]string{"pgrep": `case "$*" in *force*) exit 1;; esac; [ -e "$NODE` + manifestFile + `" ]`,
	"timeout": `echo '{"health":"true"}'`, "pkill": `echo "$2" >>"$NODE/ended"`}

// What is staged is data beside that in use, which is not changed; once it is there, nothing more is done.
func TestStage(t *testing.T) {
	n := sent(t, "of a snapshot", running)
	n.write("/var/lib/slipway/etcd-restore-20261124T000000Z/"+SnapshotFile+".new", "half of", 0o600)
	for range 2 {
		if out, code := n.run(StageProgram(toStage)); code != 0 {
			t.Fatalf("%d: %s", code, out)
		}
	}
	if n.read("data/restored-"+id+"/member/wal/0") != "of a snapshot" || n.read("data/member/wal/0") != "written" || n.read(manifestFile) != n.manifest() {
		t.Errorf("staged %q, in use %q", n.read("data/restored-"+id+"/member/wal/0"), n.read("data/member/wal/0"))
	}
	if got := n.read("tool"); strings.Count(got, "\n") != 1 || !strings.Contains(got, "--name n-a --peer-url https://172.18.0.2:2380 --token slipway-"+id) {
		t.Errorf("the tool was called with %q", got)
	}
	if out, _ := n.run(StagedProgram(toStage)); strings.TrimSpace(out) != "staged" {
		t.Errorf("it says %q", out)
	}
	tidied(t, n)
}

// tidied fails if a snapshot or the program is left of this order, or of one before.
func tidied(t *testing.T, n node) {
	t.Helper()
	for _, file := range []string{SnapshotFile, RestoreCommand} {
		if left, _ := filepath.Glob(filepath.Join(n.root, "/var/lib/slipway/etcd-restore-*", file+"*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// What cannot be staged says why, changes nothing, and leaves no half of it.
func TestStageFails(t *testing.T) {
	for name, tc := range map[string]struct {
		content  string
		manifest string
		want     string
	}{
		"damaged":    {"damaged", etcdManifest, "the snapshot is damaged"},
		"no kubeadm": {"of a snapshot", "spec: {}\n", "as kubeadm writes it"},
	} {
		n := sent(t, tc.content, running)
		if tc.manifest != etcdManifest {
			n.write(manifestFile, tc.manifest, 0o600)
		}
		out, code := n.run(StageProgram(toStage))
		if code != 3 || !strings.Contains(out, tc.want) {
			t.Errorf("%s: %d %s", name, code, out)
		}
		left, _ := filepath.Glob(filepath.Join(n.root, "data", "restored-*"))
		if len(left) > 0 || n.read("data/member/wal/0") != "written" {
			t.Errorf("%s: left %v", name, left)
		}
		tidied(t, n)
		if out, _ := n.run(StagedProgram(toStage)); strings.TrimSpace(out) != "none" {
			t.Errorf("%s: it says %q", name, out)
		}
	}
}

// restored fails unless the node has the data of the snapshot, and that from before is aside.
func restored(t *testing.T, n node) {
	t.Helper()
	if got := strings.TrimSpace(n.read(restoreState + "/result")); got != "done" {
		t.Fatalf("%q: %s", got, n.read(restoreState+"/log"))
	}
	if n.read("data/member/wal/0") != "of a snapshot" || n.read("data/member-before-"+id+"/wal/0") != "written" || n.read(manifestFile) != n.manifest() {
		t.Errorf("data %q, before %q, manifest %q", n.read("data/member/wal/0"), n.read("data/member-before-"+id+"/wal/0"), n.read(manifestFile))
	}
	if left, _ := filepath.Glob(filepath.Join(n.root, "data", "restored-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// A restore exchanges the data once, and ends what has read the data from before. Older data from before goes.
func TestRestore(t *testing.T) {
	n := sent(t, "of a snapshot", running)
	n.write("data/member-before-20261124T000000Z/wal/0", "older", 0o600)
	n.run(StageProgram(toStage))
	for range 2 {
		n.run(Program(toRestore))
		restored(t, n)
	}
	if got := n.read("ended"); got != "kube-apiserver\nkube-controller\nkube-scheduler\n" {
		t.Errorf("ended %q", got)
	}
	if got, _ := filepath.Glob(filepath.Join(n.root, "data", "member-before-*")); len(got) != 1 {
		t.Errorf("data from before: %v", got)
	}
}

// Killed after any step, the next start continues.
func TestRestoreContinues(t *testing.T) {
	move := func(n node, from, to string) error {
		return os.Rename(filepath.Join(n.root, from), filepath.Join(n.root, to))
	}
	aside := func(n node) error { return move(n, "data/member", "data/member-before-"+id) }
	for name, steps := range map[string]func(n node) error{
		"stopped": func(n node) error { return os.Remove(filepath.Join(n.root, manifestFile)) },
		"aside": func(n node) error {
			return errors.Join(os.Remove(filepath.Join(n.root, manifestFile)), aside(n))
		},
		"in its place": func(n node) error {
			return errors.Join(os.Remove(filepath.Join(n.root, manifestFile)), aside(n), move(n, "data/restored-"+id+"/member", "data/member"))
		},
		"started": func(n node) error {
			return errors.Join(aside(n), move(n, "data/restored-"+id+"/member", "data/member"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := sent(t, "of a snapshot", running)
			n.run(StageProgram(toStage))
			n.write(restoreState+"/etcd.yaml", n.manifest(), 0o600)
			if err := steps(n); err != nil {
				t.Fatal(err)
			}
			n.run(Program(toRestore))
			restored(t, n)
		})
	}
}

// A restore that fails before the new data is in its place leaves etcd to be started as before.
func TestRestoreFails(t *testing.T) {
	for name, tc := range map[string]struct {
		programs map[string]string
		staged   bool
		want     string
	}{
		"nothing staged":     {running, false, "failed no snapshot was staged"},
		"etcd does not stop": {map[string]string{"pgrep": `[ "$1" = -x ]`}, true, "failed etcd does not stop"},
		"no exchange":        {map[string]string{"pgrep": running["pgrep"], "mv": `case "$1" in *restored-*) exit 1;; esac; exec /bin/mv "$@"`}, true, "failed the new data cannot be put in its place"},
	} {
		n := sent(t, "of a snapshot", nil)
		if tc.staged {
			n.run(StageProgram(toStage))
		}
		for program, text := range tc.programs {
			n.write("bin/"+program, "#!/bin/bash\n"+text+"\n", 0o755)
		}
		n.run(Program(toRestore))
		if got := n.read(restoreState + "/result"); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %q", name, got)
		}
		if n.read("data/member/wal/0") != "written" || n.read(manifestFile) != n.manifest() {
			t.Errorf("%s: data %q, manifest %q", name, n.read("data/member/wal/0"), n.read(manifestFile))
		}
	}
	n := sent(t, "of a snapshot", map[string]string{"pgrep": running["pgrep"]})
	n.run(StageProgram(toStage))
	n.run(Program(toRestore))
	if got := n.read(restoreState + "/result"); !strings.HasPrefix(got, "failed etcd does not respond with the data of the snapshot") {
		t.Errorf("it does not respond: %q", got)
	}
}
