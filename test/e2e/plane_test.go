package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// planeStatus is the part of `slipway status -o json` that these tests read.
type planeStatus struct {
	State      string `json:"state"`
	Management *struct {
		PID     int    `json:"pid"`
		Server  string `json:"server"`
		Memory  int64  `json:"memory"`
		Manager struct {
			PID         int    `json:"pid"`
			Restarts    int    `json:"restarts"`
			LastExit    string `json:"lastExit"`
			Diagnostics string `json:"diagnostics"`
		} `json:"manager"`
	} `json:"management"`
	Supervision struct {
		PID      int    `json:"pid"`
		Restarts int    `json:"restarts"`
		LastExit string `json:"lastExit"`
	} `json:"supervision"`
}

func (in *installation) planeStatus() planeStatus {
	in.t.Helper()
	var s planeStatus
	if err := json.Unmarshal([]byte(in.run("status", "-o", "json")), &s); err != nil {
		in.t.Fatal(err)
	}
	return s
}

// A management cluster killed in the middle of its work is restarted by its supervisor and continues with nothing lost; where the supervisor is
// killed, too, the next start does so.
func TestPlaneKilled(t *testing.T) {
	in := newInstallation(t)
	in.up()
	in.kubectl("create", "configmap", "kept", "--from-literal=answer=42")
	first := in.planeStatus()
	if first.State != "Running" || first.Management.Memory == 0 || !strings.HasPrefix(first.Management.Server, "https://127.0.0.1:") {
		t.Errorf("status: %+v", first)
	}
	if err := syscall.Kill(first.Management.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, long, "another process", func() error {
		now := in.planeStatus()
		if now.State != "Running" || now.Management.PID == first.Management.PID || now.Supervision.Restarts != 1 || now.Supervision.LastExit != "signal: killed" {
			return fmt.Errorf("have %+v", now)
		}
		return nil
	})
	in.up() // it runs already
	for range 2 {
		before := in.planeStatus()
		m := before.Management
		if err := syscall.Kill(before.Supervision.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		until(t, short, "status after the kill", "Stopped", func() string { return in.planeStatus().State })
		until(t, short, "the manager lives", "false", func() string { return strconv.FormatBool(lives(m.Manager.PID)) })
		in.up()
		if got := in.get("configmap/kept", "{.data.answer}"); got != "42" {
			t.Fatalf("after a kill the ConfigMap says %q, want 42", got)
		}
	}
	in.run("down")
	if s := in.planeStatus(); s.State != "Stopped" || s.Management != nil {
		t.Errorf("status after down: %+v", s)
	}
	if out, err := in.try("down"); err != nil {
		t.Errorf("down again: %v\n%s", err, out)
	}
}

// Ownership, namespaces, service accounts and aggregated roles work as in any cluster.
func TestPlaneLoops(t *testing.T) {
	in := newInstallation(t)
	in.up()
	in.apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: owner}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: goods, namespace: shop}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: part, labels: {"example.com/part": "true"}}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: whole}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {"example.com/part": "true"}}]}
rules: []
`)
	uid := in.get("configmap/owner", "{.metadata.uid}")
	in.apply(fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: owned
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: %s}]
`, uid))
	until(t, short, "the aggregated role", "configmaps", func() string { return in.get("clusterrole/whole", "{.rules[0].resources[0]}") })
	eventually(t, short, "the service account of a namespace", func() error {
		_, err := in.try("kubectl", "get", "-n", "shop", "serviceaccount", "default")
		return err
	})
	if token := in.kubectl("create", "token", "default", "-n", "shop"); strings.Count(token, ".") != 2 {
		t.Errorf("a service account's token: %q", token)
	}
	in.kubectl("delete", "configmap", "owner")
	in.kubectl("delete", "namespace", "shop", "--wait=true")
	eventually(t, short, "garbage collection", func() error {
		out := in.kubectl("get", "configmap", "-A", "-o", "name")
		if strings.Contains(out, "owned") || strings.Contains(out, "goods") {
			return fmt.Errorf("still there: %s", out)
		}
		return nil
	})
}

// Each mistake is answered with what to do, and changes nothing.
func TestPlaneRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	tests := map[string]struct {
		prepare func(t *testing.T, in *installation)
		listen  string
		says    []string
	}{
		"port taken": {
			prepare: func(*testing.T, *installation) {},
			listen:  "127.0.0.1:" + port, says: []string{"port " + port, "--listen"},
		},
		"address of the network": {
			prepare: func(*testing.T, *installation) {},
			listen:  "0.0.0.0:6440", says: []string{"loopback", "127.0.0.1:6440"},
		},
		"data directory of a newer version": {
			prepare: func(t *testing.T, in *installation) {
				write(t, filepath.Join(in.dataDir, "version"), "slipway data directory, format 99\n")
			},
			says: []string{`"99"`, "--data-dir"},
		},
		"data directory that cannot be made": {
			prepare: func(t *testing.T, in *installation) {
				write(t, filepath.Join(filepath.Dir(in.dataDir), "file"), "")
				in.dataDir = filepath.Join(filepath.Dir(in.dataDir), "file", "data")
			},
			says: []string{"cannot be used", "--data-dir"},
		},
		"folder with other files": {
			prepare: func(t *testing.T, in *installation) { write(t, filepath.Join(in.dataDir, "thesis.txt"), "x") },
			says:    []string{"thesis.txt", "--data-dir"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := &installation{t: t, dataDir: filepath.Join(t.TempDir(), "data"), binary: newInstallation(t).binary}
			test.prepare(t, in)
			if test.listen == "" {
				test.listen = "127.0.0.1:0"
			}
			for _, args := range [][]string{{"up", "--listen", test.listen}, {"up", "--detach", "--listen", test.listen}} {
				out, err := in.try(args...)
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != 2 {
					t.Fatalf("slipway %s: %v, want exit code 2\n%s", strings.Join(args, " "), err, out)
				}
				for _, s := range test.says {
					if !strings.Contains(out, s) {
						t.Errorf("slipway %s does not say %q: %s", strings.Join(args, " "), s, out)
					}
				}
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A second `up` says who holds the directory and leaves the first one alone.
func TestPlaneHeld(t *testing.T) {
	in := newInstallation(t)
	in.up()
	pid := in.planeStatus().Management.PID
	out, err := in.try("up", "--listen", "127.0.0.1:0")
	if err == nil {
		t.Fatal("a second up was accepted")
	}
	for _, s := range []string{"held by process " + strconv.Itoa(pid), "slipway down"} {
		if !strings.Contains(out, s) {
			t.Errorf("it does not say %q: %s", s, out)
		}
	}
	if s := in.planeStatus(); s.State != "Running" || s.Management.PID != pid {
		t.Errorf("the first one: %+v", s)
	}
}

// `up` in the foreground ends at Ctrl-C with nothing left running.
func TestPlaneInterrupted(t *testing.T) {
	in := newInstallation(t)
	cmd := exec.Command(in.binary, "up", "--data-dir", in.dataDir, "--listen", in.listen)
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Ready") {
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, said)
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if s := in.planeStatus(); s.State != "Stopped" {
		t.Errorf("status: %+v", s)
	}
}

// Nothing but TLS on loopback: etcd is on unix sockets, anonymous requests see health and version only.
func TestPlaneIsClosed(t *testing.T) {
	in := newInstallation(t)
	in.up()
	status := in.planeStatus()
	for _, address := range listeners(t, status.Management.PID) {
		host, _, err := net.SplitHostPort(address)
		if err != nil || !net.ParseIP(host).IsLoopback() {
			t.Errorf("it listens on %s, which is not loopback", address)
		}
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) // only whether it speaks TLS
		if err != nil {
			t.Errorf("%s does not speak TLS: %v", address, err)
			continue
		}
		_ = conn.Close()
	}
	anonymous := anonymousClient(t, in)
	for path, want := range map[string]int{"/readyz": 200, "/livez": 200, "/version": 200, "/api": 401, "/api/v1/secrets": 401, "/metrics": 401, "/openapi/v2": 401} {
		response, err := anonymous.Get(status.Management.Server + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("anonymous %s: %d, want %d", path, response.StatusCode, want)
		}
	}
	privateFiles(t, in.dataDir)
}

// anonymousClient trusts the cluster and shows no certificate.
func anonymousClient(t *testing.T, in *installation) *http.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(in.dataDir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(config.CAData) {
		t.Fatal("no authority in the kubeconfig")
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
}

// privateFiles checks that keys, kubeconfigs and sockets are for their owner only.
func privateFiles(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return nil // gone since
		}
		if entry.IsDir() && info.Mode().Perm() != 0o700 && !isOfOnePlane(info) {
			t.Errorf("folder %s has mode %o, want 700", path, info.Mode().Perm())
		}
		secret := strings.HasSuffix(path, ".key") || strings.Contains(filepath.Base(path), "kubeconfig")
		if secret && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", path, info.Mode().Perm())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// isOfOnePlane reports whether a folder is one of root and of the user of one control plane.
func isOfOnePlane(info fs.FileInfo) bool {
	st := info.Sys().(*syscall.Stat_t)
	return info.IsDir() && info.Mode().Perm() == 0o770 && info.Mode()&fs.ModeSticky != 0 && st.Uid == 0 && uidisolation.IsControlPlaneUser(int(st.Gid))
}

// listeners are the TCP addresses that a process listens on.
func listeners(t *testing.T, pid int) []string {
	t.Helper()
	sockets := map[string]bool{}
	fds := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(fds)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		target, _ := os.Readlink(filepath.Join(fds, e.Name()))
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	var out []string
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" && sockets[f[9]] { // 0A: listening
				out = append(out, address(t, f[1]))
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("process %d listens nowhere", pid)
	}
	return out
}

// address reads "0100007F:1928".
func address(t *testing.T, hex string) string {
	t.Helper()
	host, port, _ := strings.Cut(hex, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	ip := make(net.IP, len(host)/2)
	for i := range ip {
		b, err := strconv.ParseUint(host[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		ip[i/4*4+3-i%4] = byte(b) // four bytes at a time, least significant first
	}
	return net.JoinHostPort(ip.String(), strconv.FormatUint(n, 10))
}

// lives tells whether a process has not ended; one that no one has waited for yet has.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

// down --delete leaves nothing, whether or not the cluster runs.
func TestPlaneDelete(t *testing.T) {
	in := newInstallation(t)
	in.up()
	pid := in.planeStatus().Management.PID
	in.run("down", "--delete")
	if _, err := os.Stat(in.dataDir); !os.IsNotExist(err) {
		t.Errorf("the data directory is still there: %v", err)
	}
	if lives(pid) {
		t.Errorf("process %d is still there", pid)
	}
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	if out, err := in.within(ctx, "down", "--delete"); err != nil {
		t.Errorf("again: %v\n%s", err, out)
	}
}
