package ssh

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/sshtest"
)

// reason returns the reason of a fault.
func reason(err error) string {
	if f := fault.As(err); f != nil {
		return f.Reason
	}
	return ""
}

// TestFaults disturbs hosts in the ways that real ones fail.
func TestFaults(t *testing.T) {
	enabled(t)
	machines := startHosts(t, "bookworm", 2)
	pool := remote.NewPool(remote.Limits{})
	defer pool.Close()
	t.Run("users", func(t *testing.T) { testUsers(t, pool, machines[0]) })
	t.Run("jump host", func(t *testing.T) { testJumpHost(t, pool, machines) })
	t.Run("preflight", func(t *testing.T) { testPreflight(t, pool, machines[0]) })
	t.Run("claims", func(t *testing.T) { testClaims(t, pool, machines[0]) })
	t.Run("foreign files", func(t *testing.T) { testForeignFiles(t, pool, machines[1]) })
	t.Run("cut upload", func(t *testing.T) { testCutUpload(t, pool, machines[0]) })
	t.Run("host key", func(t *testing.T) { testHostKey(t, machines[1]) })
}

// testUsers logs in as a user without sudo, and as one that is unknown.
func testUsers(t *testing.T, pool *remote.Pool, m host) {
	ops := m.target("ops")
	ops.Sudo = false
	if _, err := pool.Connect(t.Context(), ops); reason(err) != "NotRoot" {
		t.Errorf("without sudo: %v", err)
	}
	run(t, "docker", "exec", m.name, "rm", "/etc/sudoers.d/ops")
	if _, err := pool.Connect(t.Context(), m.target("ops")); reason(err) != "NotRoot" {
		t.Errorf("not in sudoers: %v", err)
	}
	if _, err := pool.Connect(t.Context(), m.target("stranger")); reason(err) != "AuthenticationFailed" {
		t.Errorf("an unknown user: %v", err)
	}
}

// testJumpHost reaches one host through the other.
func testJumpHost(t *testing.T, pool *remote.Pool, machines []host) {
	to, jump := machines[1].target("ops"), machines[0].target("root")
	to.Jump = &jump
	h, err := pool.Connect(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := h.Facts(t.Context()); err != nil || f.Hostname != machines[1].name {
		t.Errorf("%+v %v", f, err)
	}
	if r, err := h.ReadRecord(t.Context()); r != nil || err != nil { // a file transfer with sudo
		t.Errorf("%v %v", r, err)
	}
}

// testPreflight finds a port in use, programs of another installation, and a hostname that another host has.
func testPreflight(t *testing.T, pool *remote.Pool, m host) {
	run(t, "docker", "exec", m.name, "systemd-run", "--unit=blocker", "systemd-socket-activate", "-l", "10250", "/bin/cat")
	run(t, "docker", "exec", m.name, "sh", "-c", "cp /bin/true /usr/bin/kubelet && mkdir -p /etc/containerd && touch /etc/containerd/config.toml")
	h, err := pool.Connect(t.Context(), m.target("root"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	eventually(t, "the port to be in use", defaultWait, func() error {
		found, err := h.Preflight(t.Context(), remote.PreflightOptions{ManagedBundle: true, Hostnames: map[string]string{m.name: "other"}})
		if err != nil {
			return err
		}
		got = nil
		for _, f := range found {
			if f.Fatal {
				got = append(got, f.Check)
			}
		}
		if !slices.Contains(got, "Ports") {
			return errors.New("the port is free")
		}
		return nil
	})
	slices.Sort(got)
	if text := strings.Join(got, " "); text != "Hostname Installation Installation Ports" {
		t.Errorf("found %s", text)
	}
	run(t, "docker", "exec", m.name, "systemctl", "stop", "blocker")
	run(t, "docker", "exec", m.name, "rm", "-rf", "/usr/bin/kubelet", "/etc/containerd")
}

// testClaims lets two managers claim the same host at the same time.
func testClaims(t *testing.T, pool *remote.Pool, m host) {
	other := remote.NewPool(remote.Limits{})
	defer other.Close()
	claims, won := []string{strings.Repeat("d", 26), strings.Repeat("e", 26)}, make([]bool, 2)
	var racing sync.WaitGroup
	for i, p := range []*remote.Pool{pool, other} {
		h, err := p.Connect(t.Context(), m.target("root"))
		if err != nil {
			t.Fatal(err)
		}
		racing.Go(func() {
			err := h.WriteRecord(t.Context(), remote.Record{ClaimID: claims[i]})
			won[i] = err == nil
			if err != nil && reason(err) != remote.ReasonClaimedByAnother {
				t.Error(err)
			}
		})
	}
	racing.Wait()
	if won[0] == won[1] {
		t.Fatalf("exactly one must win: %v", won)
	}
	winner := claims[slices.Index(won, true)]
	h, err := pool.Connect(t.Context(), m.target("root"))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := h.ReadRecord(t.Context()); err != nil || r.ClaimID != winner {
		t.Errorf("%+v %v", r, err)
	}
	if err := h.DeleteRecord(t.Context(), winner); err != nil {
		t.Error(err)
	}
}

// smallBundle returns a bundle with which no node could run: enough to test how bundles are copied.
func smallBundle(t *testing.T) bundle.Bundle {
	t.Helper()
	program := make([]byte, 64<<20)
	if _, err := rand.Read(program); err != nil {
		t.Fatal(err)
	}
	return sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": program, "bin/crictl": program[:1<<20], "cni/bridge": program[:1<<20]})
}

// testForeignFiles prepares a host on which a file of another installation exists.
func testForeignFiles(t *testing.T, pool *remote.Pool, m host) {
	claim, b := strings.Repeat("f", 26), smallBundle(t)
	h, err := pool.Connect(t.Context(), m.target("ops"))
	if err != nil {
		t.Fatal(err)
	}
	run(t, "docker", "exec", m.name, "sh", "-c", "echo theirs >/usr/local/bin/kubeadm")
	if err := h.WriteRecord(t.Context(), remote.Record{ClaimID: claim}); err != nil {
		t.Fatal(err)
	}
	if err := h.InstallBundle(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	err = h.PrepareNode(t.Context(), b, remote.NodeSettings{})
	if reason(err) != "FileExists" || !strings.Contains(fault.UserMessage(err), "/usr/local/bin/kubeadm") {
		t.Errorf("%v", err)
	}
	if left, err := h.Reset(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
	if text := run(t, "docker", "exec", m.name, "cat", "/usr/local/bin/kubeadm"); text != "theirs" {
		t.Errorf("the file was changed: %q", text)
	}
	run(t, "docker", "exec", m.name, "rm", "/usr/local/bin/kubeadm")
	if err := h.DeleteRecord(t.Context(), claim); err != nil {
		t.Error(err)
	}
}

// testCutUpload cuts the connection in the middle of an upload, which then continues.
func testCutUpload(t *testing.T, pool *remote.Pool, m host) {
	b := smallBundle(t)
	h, err := pool.Connect(t.Context(), m.target("root"))
	if err != nil {
		t.Fatal(err)
	}
	cut := false
	err = h.InstallBundle(t.Context(), b, func(done, total int64) {
		if done > total/2 && !cut {
			cut = true
			m.cutConnections()
		}
	})
	if !cut || fault.KindOf(err) != fault.Unreachable {
		t.Fatalf("the connection was cut: %v", err)
	}
	var first int64
	if err := h.InstallBundle(t.Context(), b, func(done, _ int64) {
		if first == 0 {
			first = done
		}
	}); err != nil {
		t.Fatal(err)
	}
	if first < b.Size()*2/5 {
		t.Errorf("the upload began again at %d of %d bytes", first, b.Size())
	}
}

// testHostKey gives the host another key.
func testHostKey(t *testing.T, m host) {
	pool := remote.NewPool(remote.Limits{})
	defer pool.Close()
	run(t, "docker", "exec", m.name, "sh", "-c", "rm /etc/ssh/ssh_host_*; ssh-keygen -A && systemctl restart ssh")
	_, err := pool.Connect(t.Context(), m.target("root"))
	presented := strings.Fields(run(t, "docker", "exec", m.name, "ssh-keygen", "-lf", "/etc/ssh/ssh_host_ed25519_key.pub"))[1]
	if reason(err) != remote.ReasonHostKeyMismatch || !strings.Contains(fault.UserMessage(err), presented) {
		t.Errorf("%v", err)
	}
	keys, err := pool.ScanHostKeys(t.Context(), m.target("root"))
	if err != nil || len(keys) != 3 {
		t.Errorf("%v %v", keys, err)
	}
}
