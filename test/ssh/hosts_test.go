package ssh

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

//go:embed entrypoint.sh
var entrypoint []byte

// packages are the Debian packages of a test host.
const packages = "systemd,systemd-sysv,dbus,openssh-server,sudo,iproute2,kmod,procps,ca-certificates"

// The addresses are for tests of network devices (RFC 2544), so that neither a network of this machine nor one that Slipway chooses
// for containers has them.
const (
	network = "slipway-test-hosts"
	subnet  = "198.18.0.0/16"
)

// enabled skips the test unless `make test` or `make test-ssh` runs it.
func enabled(t *testing.T) {
	t.Helper()
	if os.Getenv("SLIPWAY_TEST_SSH") == "" {
		t.Skip("run make test or make test-ssh")
	}
}

// defaultWait limits waits for what takes a moment.
const defaultWait = 2 * time.Minute

// run runs a command and returns its output.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := command(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func command(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// hostImage returns an image of a suite of Debian, which is built once and cached.
func hostImage(t *testing.T, suite string) string {
	t.Helper()
	sum := sha256.Sum256(append([]byte(packages+suite), entrypoint...))
	image := "slipway-test-host:" + suite + "-" + hex.EncodeToString(sum[:6])
	if _, err := command("docker", "image", "inspect", image); err == nil {
		return image
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	rootfs := filepath.Join(cache, "slipway", "test-host-"+suite+".tar")
	if _, err := os.Stat(rootfs); err != nil {
		run(t, "mmdebstrap", "--quiet", "--variant=minbase", "--include="+packages, "--format=tar", "--skip=output/dev", suite, rootfs+".draft")
		if err := os.Rename(rootfs+".draft", rootfs); err != nil {
			t.Fatal(err)
		}
	}
	base := image + "-base"
	run(t, "docker", "import", rootfs, base)
	build := exec.Command("docker", "build", "--network=none", "-t", image, "-")
	build.Env = append(os.Environ(), "DOCKER_BUILDKIT=0")
	build.Stdin = buildContext(t, base)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", image, err, out)
	}
	return image
}

// buildContext returns a Dockerfile and the entrypoint.
func buildContext(t *testing.T, base string) io.Reader {
	t.Helper()
	dockerfile := "FROM " + base + `
COPY entrypoint.sh /entrypoint
RUN chmod 755 /entrypoint && rm -f /etc/machine-id /etc/ssh/ssh_host_* && touch /etc/machine-id && \
    useradd -m -s /bin/bash ops && mkdir -p /root/.ssh /home/ops/.ssh && chmod 700 /root/.ssh && \
    echo 'ops ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/ops && \
    cd /etc/systemd/system && for unit in systemd-sysctl.service systemd-modules-load.service systemd-remount-fs.service \
      sys-kernel-debug.mount sys-kernel-tracing.mount systemd-udevd.service getty.target systemd-logind.service dev-hugepages.mount \
      systemd-update-utmp.service systemd-firstboot.service apt-daily.timer apt-daily-upgrade.timer; do ln -sf /dev/null $unit; done
ENV container=docker
STOPSIGNAL SIGRTMIN+3
ENTRYPOINT ["/entrypoint"]
`
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, text := range map[string][]byte{"Dockerfile": []byte(dockerfile), "entrypoint.sh": entrypoint} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// host is a test host.
type host struct {
	name, address string
	key           []byte
	hostKey       string
}

// target returns the target for a user; users other than root need sudo.
func (h host) target(user string) remote.Target {
	return remote.Target{Address: h.address, User: user, PrivateKey: h.key, HostKeys: []string{h.hostKey}, Sudo: user != "root"}
}

// startHosts starts n test hosts at once, which are removed with the test.
func startHosts(t *testing.T, suite string, n int) []host {
	t.Helper()
	image := hostImage(t, suite)
	createNetwork(t)
	_ = os.WriteFile("/proc/sys/fs/inotify/max_user_instances", []byte("8192"), 0o644) // where this is refused, eight hosts work
	key, authorized := newKey(t)
	out, errs := make([]host, n), make([]error, n)
	var starting sync.WaitGroup
	for i := range n {
		out[i] = host{name: fmt.Sprintf("%s-%s-%d", network, suite, i), address: fmt.Sprintf("198.18.0.%d", 10+i), key: key}
		starting.Go(func() { errs[i] = out[i].start(image, authorized) })
		t.Cleanup(func() {
			if os.Getenv("SLIPWAY_TEST_SSH_KEEP") == "" {
				_, _ = command("docker", "rm", "-f", "-v", out[i].name)
			}
		})
	}
	starting.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i := range out {
		out[i].waitBooted(t)
	}
	return out
}

// createNetwork creates the network of the hosts if it does not exist. It stays for the next test.
func createNetwork(t *testing.T) {
	t.Helper()
	if _, err := command("docker", "network", "inspect", network); err != nil {
		run(t, "docker", "network", "create", "--internal", "--subnet", subnet, network)
	}
}

func newKey(t *testing.T) (private []byte, authorized string) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := xssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	sshKey, err := xssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block), string(xssh.MarshalAuthorizedKey(sshKey))
}

// start starts the container and installs the key.
func (h *host) start(image, authorized string) error {
	_, _ = command("docker", "rm", "-f", "-v", h.name)
	if _, err := command("docker", "run", "-d", "--name", h.name, "--hostname", h.name, "--network", network, "--ip", h.address, "--cgroupns=private",
		"--cap-add=ALL", "--cap-drop=SYS_RESOURCE", "--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined",
		"--device-cgroup-rule=a *:* rwm", "--device", "/dev/kmsg", "--tmpfs", "/run:exec", "--tmpfs", "/tmp:exec", "-v", "/var", image); err != nil {
		return err
	}
	script := `ssh-keygen -A >/dev/null && for home in /root /home/ops; do
		printf '%s\n' "$1" >$home/.ssh/authorized_keys && chmod 600 $home/.ssh/authorized_keys || exit 1
	done; chown -R ops:ops /home/ops && cat /etc/ssh/ssh_host_ed25519_key.pub`
	var err error
	h.hostKey, err = command("docker", "exec", h.name, "sh", "-c", script, "sh", strings.TrimSpace(authorized))
	return err
}

// waitBooted waits until systemd has started everything.
func (h *host) waitBooted(t *testing.T) {
	t.Helper()
	eventually(t, h.name+" to boot", patience, func() error {
		_, err := command("docker", "exec", h.name, "sh", "-c", "systemctl is-system-running | grep -qE 'running|degraded' && { systemctl restart ssh; systemctl is-active ssh; }")
		return err
	})
}

// eventually calls f until it returns nil.
func eventually(t *testing.T, what string, timeout time.Duration, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	ticker := time.NewTicker(300 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited %v for %s: %v", timeout, what, err)
		case <-ticker.C:
		}
	}
}

// cutConnections kills the processes of sshd that serve connections.
func (h host) cutConnections() {
	_, _ = command("docker", "exec", h.name, "sh", "-c",
		"for pid in $(grep -lsE '^sshd(-session)?$' /proc/[0-9]*/comm | cut -d / -f 3); do [ $pid = $(systemctl show -p MainPID --value ssh) ] || kill -9 $pid; done")
}
