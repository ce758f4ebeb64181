package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkProcesses injects the faults of the processes of a management cluster, one after the other, because each of them is
// one of all objects.
func (r *results) checkProcesses(t *testing.T, only *regexp.Regexp) {
	rows := selected(processRows(), only)
	if len(rows) == 0 {
		return
	}
	folder, err := os.MkdirTemp("", "slipway-test-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	w := startWorldIn(t, folder, "DOCKER_HOST=unix://"+filepath.Join(folder, "docker.sock"))
	for _, fault := range rows {
		t.Run(fault.id, func(t *testing.T) { r.check(w.newNamespace(t, fault.id), fault) })
	}
}

// checkDisk injects the fault of a full disk into a management cluster on a small one.
func (r *results) checkDisk(t *testing.T, only *regexp.Regexp) {
	fault := diskRow()
	if !only.MatchString(fault.id) {
		return
	}
	folder, err := os.MkdirTemp("", "slipway-test-")
	must(t, err)
	must(t, unix.Mount("tmpfs", folder, "tmpfs", 0, "size=260m")) // needs root, as the containers of the other rows do
	t.Cleanup(func() {
		if err := errors.Join(unix.Unmount(folder, unix.MNT_DETACH), os.Remove(folder)); err != nil {
			t.Error(err)
		}
	})
	w := startWorldIn(t, folder)
	r.check(w.newNamespace(t, fault.id), fault)
}

// availableFleet creates a simulated cluster and waits until it is available, so that the fault is the only problem.
func (n *namespace) availableFleet() string {
	n.Helper()
	n.fleet()
	n.await("Cluster", "fleet", "Available")
	n.machine()
	return "Cluster/fleet"
}

// managerPID returns the process of the manager; 0: it does not run.
func (w *world) managerPID(t testing.TB) int {
	t.Helper()
	out, err := w.run("status", "--output", "json")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var status struct {
		Management struct {
			Manager struct {
				PID int `json:"pid"`
			} `json:"manager"`
		} `json:"management"`
	}
	must(t, json.Unmarshal([]byte(out), &status))
	return status.Management.Manager.PID
}

// killManager ends the process of the manager by force, once there is another one than before, and returns it.
func (n *namespace) killManager(before int) (pid int) {
	n.Helper()
	eventually(n, "a manager runs", func() error {
		if pid = n.managerPID(n); pid == 0 || pid == before {
			return fmt.Errorf("process %d", pid)
		}
		return nil
	})
	n.must(syscall.Kill(pid, syscall.SIGKILL))
	return pid
}

func processRows() []row {
	return []row{
		{id: "I1", fault: "Docker does not respond", inject: func(n *namespace) string {
			n.containers("i1", "172.30.")
			return "Cluster/i1"
		}, object: "LocalCluster i1", cause: "Docker does not respond", remedy: "Start Docker"},
		{id: "M5", fault: "port of the API server taken", isRefused: true, inject: func(n *namespace) string {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			n.must(err)
			n.Cleanup(func() { _ = l.Close() })
			second := &world{dir: filepath.Join(filepath.Dir(n.dir), "second"), binary: n.binary}
			out, err := second.run("up", "--detach", "--listen", l.Addr().String())
			if err == nil {
				_, _ = second.run("down", "--delete")
				n.Fatalf("a second management cluster runs at %s", l.Addr())
			}
			return out
		}, cause: "is taken by process", remedy: "choose another port with --listen"},
		{id: "M3", fault: "manager hangs", isProcess: true, inject: func(n *namespace) string {
			what, pid := n.availableFleet(), n.managerPID(n)
			n.must(syscall.Kill(pid, syscall.SIGSTOP))
			n.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
			return what
		}, object: "Manager", cause: "a signal has stopped it", remedy: "Continue process"},
		{id: "M2", fault: "manager killed", isProcess: true, inject: func(n *namespace) string {
			what, pid := n.availableFleet(), 0
			for range 4 {
				pid = n.killManager(pid)
			}
			return what
		}, object: "Manager", cause: "killed", remedy: "If it exits again, read"},
	}
}

// diskRow is the fault of a management cluster of its own.
func diskRow() row {
	return row{id: "M1", fault: "disk of the data directory is full", isProcess: true, inject: func(n *namespace) string {
		what := n.availableFleet()
		n.must(fill(filepath.Join(filepath.Dir(n.dir), "ballast")))
		for i := 0; ; i++ { // until the database has to grow
			data := map[string]string{"data": strings.Repeat("x", 800<<10)}
			if err := n.Create(n.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: fmt.Sprintf("data-%d", i)}, Data: data}); err != nil {
				n.Logf("ConfigMap %d: %v", i, err)
				return what
			}
		}
	}, object: "Management cluster", cause: "The disk of", remedy: "Free space on this disk"}
}

// fill writes a file until its disk is full.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = f.Write(bytes.Repeat([]byte{1}, 1<<20))
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
