package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestKilledWhileProvisioning kills the whole tree in the middle of provisioning; `up` again finishes the job.
func TestKilledWhileProvisioning(t *testing.T) {
	in := newInstallation(t)
	in.up()
	in.apply(quickstart(t, "killed", 2))
	eventually(t, long, "a first container", func() error {
		if out := docker(t, "ps", "-q", "--filter", "label=dev.slipway.instance="+in.instance()); len(out) == 0 {
			return fmt.Errorf("none yet")
		}
		return nil
	})
	killTree(t, in)
	if out, err := in.try("kubectl", "get", "clusters", "--request-timeout", "2s"); err == nil {
		t.Fatalf("the management cluster should be dead: %s", out)
	}
	in.up()
	w := in.untilReady("killed", 2)
	containers := docker(t, "ps", "-aq", "--filter", "label=dev.slipway.instance="+in.instance())
	if len(containers) != 2 {
		t.Errorf("%d containers for two nodes", len(containers))
	}
	if nodes, err := w.try("get", "nodes", "-o", "name"); err != nil || len(strings.Fields(nodes)) != 2 {
		t.Errorf("Nodes: %v %s", err, nodes)
	}
	tokens, err := w.try("-n", "kube-system", "get", "secrets", "--field-selector", "type=bootstrap.kubernetes.io/token", "-o", "name")
	if err != nil || len(strings.Fields(tokens)) != 1 { // KB-11: one token for the pool
		t.Errorf("join tokens: %v %s", err, tokens)
	}
	instance := in.instance()
	in.run("delete", "cluster", "killed")
	if left := in.leftovers(instance); len(left) > 0 {
		t.Errorf("left on the host: %v", left)
	}
}

// killTree sends SIGKILL to the management process and to every hosted control plane.
func killTree(t *testing.T, in *installation) {
	t.Helper()
	out := in.run("status", "-o", "json")
	var pids []int
	for _, line := range strings.Split(out, "\n") {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || key != `"pid"` {
			continue
		}
		pid, err := strconv.Atoi(strings.Trim(value, " ,"))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) < 2 {
		t.Fatalf("status names %d processes:\n%s", len(pids), out)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatalf("killing %d: %v", pid, err)
		}
	}
}

// TestDockerAway takes Docker away before the first node, then gives it back.
func TestDockerAway(t *testing.T) {
	engine := newGate(t)
	in := newInstallation(t)
	t.Cleanup(engine.open) // so that what the test made can be removed
	in.env = []string{"DOCKER_HOST=unix://" + engine.path}
	engine.shut()
	in.up()
	in.apply(quickstart(t, "away", 1))
	untilContains(t, short, "the LocalCluster says that Docker does not respond", "Docker", func() string {
		return in.condition("localcluster/away", "Ready")
	})
	engine.open()
	in.untilReady("away", 1)
	engine.shut()
	in.kubectl("scale", "machinepool", "away-workers", "--replicas", "2")
	untilContains(t, short, "a LocalMachine says that Docker does not respond", "Docker", func() string {
		return in.get("localmachines", `{range .items[*].status.conditions[?(@.type=="MachineProvisioned")]}{.message}{"\n"}{end}`)
	})
	untilContains(t, short, "and so does an event", "Docker", func() string {
		return in.get("events", `{range .items[?(@.involvedObject.kind=="LocalMachine")]}{.message}{"\n"}{end}`)
	})
	engine.open()
	in.untilReady("away", 2)
	in.run("delete", "cluster", "away")
}

// gate is a way to Docker that can be shut.
type gate struct {
	t    *testing.T
	path string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
}

func newGate(t *testing.T) *gate {
	t.Helper()
	dir, err := os.MkdirTemp("", "gate-")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{t: t, path: filepath.Join(dir, "docker.sock")}
	t.Cleanup(func() { g.shut(); _ = os.RemoveAll(dir) })
	g.open()
	return g
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != nil {
		return
	}
	listener, err := net.Listen("unix", g.path)
	if err != nil {
		g.t.Fatal(err)
	}
	g.listener = listener
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			g.pass(in)
		}
	}()
}

func (g *gate) pass(in net.Conn) {
	out, err := net.Dial("unix", "/var/run/docker.sock")
	if err != nil {
		_ = in.Close()
		return
	}
	g.mu.Lock()
	g.conns = append(g.conns, in, out)
	g.mu.Unlock()
	halves := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		if half, ok := to.(*net.UnixConn); ok {
			_ = half.CloseWrite()
		}
	}
	go halves(out, in)
	go halves(in, out)
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener == nil {
		return
	}
	_ = g.listener.Close()
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.listener, g.conns = nil, nil
}

// TestImageAbsent asks for a node image that is not there.
func TestImageAbsent(t *testing.T) {
	in := newInstallation(t)
	in.up()
	absent := "slipway.dev/node:e2e-absent-" + filepath.Base(filepath.Dir(in.dataDir)) // other names are not allowed
	manifest := strings.ReplaceAll(quickstart(t, "absent", 1), "container: {}", "container: {image: "+absent+"}")
	in.apply(manifest)
	untilContains(t, long, "the condition names the image and what to do", "image", func() string {
		return in.get("localmachines", `{range .items[*].status.conditions[?(@.type=="MachineProvisioned")]}{.reason}: {.message}{"\n"}{end}`)
	})
	if out, err := exec.Command("docker", "tag", "slipway.dev/node:v1.36.3", absent).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	t.Cleanup(func() { docker(t, "rmi", absent) })
	in.untilReady("absent", 1)
	in.run("delete", "cluster", "absent")
}
