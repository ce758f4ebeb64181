package cloudinit_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/cloudinit"
	"github.com/slipwayhq/slipway/internal/redact"
)

var node = cloudinit.NodeSettings{
	Name: "slipway-default-a-01234567", Hostname: "a", ProviderID: "slipway:///slipway-default-a-01234567",
	Address: netip.MustParseAddr("172.31.0.2"),
}

// run carries out a script below a folder instead of /, and returns its output.
func run(t *testing.T, root string, script []byte) string {
	t.Helper()
	for _, at := range []string{"/etc", "/run", "/srv"} {
		script = bytes.ReplaceAll(script, []byte(at+"/"), []byte(root+at+"/"))
	}
	script = bytes.ReplaceAll(script, []byte("-x /sbin/init"), []byte("-x "+root+"/sbin/init"))
	cmd := exec.Command("/bin/sh")
	cmd.Stdin = bytes.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The script is judged by what it does, not by how it looks.
func TestRenderedScriptDoesTheWork(t *testing.T) {
	root := t.TempDir()
	data := `## template: jinja
#cloud-config
bootcmd:
- echo first >` + root + `/order
write_files:
- path: ` + root + `/etc/it's/a file
  content: "host {{ ds.meta_data.local_hostname }}\n'quoted' $HOME\n"
  permissions: "0640"
  owner: "` + fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) + `"
- path: ` + root + `/etc/it's/a file
  content: "more"
  append: true
  owner: "` + fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) + `"
- path: ` + root + `/etc/default/kubelet
  content: "KUBELET_EXTRA_ARGS='--v=4'\n"
  owner: "` + fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) + `"
disk_setup: {}
runcmd:
- cat ` + root + `/etc/default/kubelet >>` + root + `/order
- [echo, "two  words"]
- false
- cat
- exit 3
`
	s, err := cloudinit.RenderScript(cloudinit.BootstrapData{Value: []byte(data)}, node, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if s.Sentinel != "/run/cluster-api/bootstrap-success.complete" || s.Timeout != time.Minute {
		t.Errorf("got sentinel %q, timeout %s", s.Sentinel, s.Timeout)
	}
	// The data names the folder itself, so only what the script adds is moved there.
	body := bytes.ReplaceAll(s.Body, []byte(root), []byte("\x00"))
	for _, at := range []string{"/etc/default", "/etc/sysconfig", "/run/slipway"} {
		body = bytes.ReplaceAll(body, []byte("\x00"+at), []byte("\x01"+at))
		body = bytes.ReplaceAll(body, []byte(at), []byte("\x00"+at))
		body = bytes.ReplaceAll(body, []byte("\x01\x00"+at), []byte("\x00"+at))
	}
	body = bytes.ReplaceAll(body, []byte("/sbin/init"), []byte("/no/such/init"))
	cmd := exec.Command("/bin/sh")
	cmd.Stdin = bytes.NewReader(bytes.ReplaceAll(body, []byte("\x00"), []byte(root)))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got, want := read(t, root, "etc/it's/a file"), "host a\n'quoted' $HOME\nmore"; got != want {
		t.Errorf("file: got %q, want %q", got, want)
	}
	if info, err := os.Stat(filepath.Join(root, "etc/it's/a file")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the last item decides the permissions: got %v, %v", info.Mode(), err)
	}
	order := read(t, root, "order")
	if want := "first\nKUBELET_EXTRA_ARGS='--v=4'\nKUBELET_EXTRA_ARGS=\"--v=4 --node-ip=172.31.0.2 --provider-id=slipway:///slipway-default-a-01234567\"\n"; order != want {
		t.Errorf("the kubelet knows its provider ID before the commands run (IM-02): got %q, want %q", order, want)
	}
	want := "slipway: skipped: disk_setup\nslipway: running bootcmd\nslipway: running runcmd\ntwo  words\nslipway: runcmd ended with code 3\n"
	if string(out) != want {
		t.Errorf("log: got %q, want %q; a failing command does not prevent the next", out, want)
	}
}

// A node on a busy host needs minutes until containerd responds: it is waited for as long as the bootstrap may take, and what is waited for is
// recorded. Clients 4.
func TestScriptWaitsForContainerd(t *testing.T) {
	root := t.TempDir()
	bin := filepath.Join(root, "bin")
	for name, text := range map[string]string{
		"bin/systemctl":  "case $1 in is-system-running) echo starting; exit 1;; show) cat " + root + "/started;; *) exit 0;; esac\n",
		"bin/journalctl": "cat " + root + "/journal 2>/dev/null\n",
		"sbin/init":      "exit 0\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755), os.WriteFile(filepath.Join(root, name), []byte("#!/bin/sh\n"+text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := cloudinit.RenderScript(cloudinit.BootstrapData{Value: []byte("#cloud-config\nruncmd: [\"echo ran\"]\n")}, node, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	script := decodeSteps(t, s.Body)
	for _, at := range []string{"/etc", "/run", "/sbin", "/proc"} {
		script = bytes.ReplaceAll(script, []byte(at+"/"), []byte(root+at+"/"))
	}
	for name, text := range map[string]string{"started": "", "proc/uptime": "400.12 3.4\n"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755), os.WriteFile(filepath.Join(root, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const ran = "slipway: systemd did not finish booting within 0 seconds; the bootstrap data runs without it\nslipway: running runcmd\nran\n"
	for _, step := range []struct{ journal, started, stage, log string }{
		{"of a host that runs for long", "1000000", "step runcmd - end\n", ran},
		{"starting", "390000000", "containerd\n", "slipway: systemd did not finish booting within 0 seconds; the bootstrap data runs without it\n"},
		{"Start streaming server", "390000000", "step runcmd - end\n", ran},
	} {
		if err := errors.Join(os.WriteFile(filepath.Join(root, "journal"), []byte(step.journal+"\n"), 0o600), os.WriteFile(filepath.Join(root, "started"), []byte(step.started+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		socket, err := net.Listen("unix", socketIn(t, root))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("timeout", "2", "/bin/sh", "-s")
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		cmd.Stdin = bytes.NewReader(script)
		out, _ := cmd.CombinedOutput()
		_ = socket.Close()
		if got := read(t, root, "run/slipway/bootstrap.stage"); got != step.stage || string(out) != step.log {
			t.Errorf("%s: got stage %q, log %q", step.journal, got, out)
		}
	}
}

func socketIn(t *testing.T, root string) string {
	t.Helper()
	dir := filepath.Join(root, "run/containerd")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "containerd.sock")
}

// Commands that fail are recorded with their place, program and code, and change nothing for those that follow. Faults B1.
func TestFailedCommandsAreRecorded(t *testing.T) {
	for name, tc := range map[string]struct{ data, failed, stage string }{
		"ends the script": {"- echo hello\n- A=1 /opt/install-proxy --password x || exit 7\n- echo never\n", "runcmd 1 install-proxy 7\n", "step runcmd 1 install-proxy\n"},
		"goes on":         {"- exit_with() ( exit $1 )\n- exit_with 3\n- echo $? >/run/code\n", "runcmd 1 exit_with 3\n", "step runcmd - end\n"},
		"the last":        {"- echo hello\n- 'false'\n", "runcmd 1 false 1\n", "step runcmd - end\n"},
		"not told apart":  {"- 'if true; then'\n- exit 5\n- fi\n", "runcmd - - 5\n", "step runcmd - -\n"},
		"a token":         {"- /opt/0123456789abcdef0123 x || exit 2\n", "runcmd 0 - 2\n", "step runcmd 0 -\n"},
		"none":            {"- echo hello\n", "", "step runcmd - end\n"},
	} {
		root := t.TempDir()
		s, err := cloudinit.RenderScript(cloudinit.BootstrapData{Value: []byte("#cloud-config\nruncmd:\n" + tc.data)}, node, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		out := runDecoded(t, root, s.Body)
		failed, _ := os.ReadFile(filepath.Join(root, "run/slipway/bootstrap.failed"))
		if got := read(t, root, "run/slipway/bootstrap.stage"); got != tc.stage || string(failed) != tc.failed {
			t.Errorf("%s: got stage %q, failed %q, output %q", name, got, failed, out)
		}
		if name == "goes on" && read(t, root, "run/code") != "3\n" {
			t.Errorf("the code of a command is the next one's to see: got %q", read(t, root, "run/code"))
		}
	}
}

// runDecoded is run where the steps of the script name folders, too.
func runDecoded(t *testing.T, root string, script []byte) string {
	t.Helper()
	return run(t, root, decodeSteps(t, script))
}

func decodeSteps(t *testing.T, script []byte) []byte {
	t.Helper()
	steps := regexp.MustCompile(`(?s)\(umask 077; base64 -d (>>?)([^)]*)\) <<'\.'\n(.*?)\.\n`)
	return steps.ReplaceAllFunc(script, func(found []byte) []byte {
		part := steps.FindSubmatch(found)
		text, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(string(part[3]), "\n", ""))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Appendf(nil, "cat %s%s <<'..'\n%s..\n", part[1], part[2], text)
	})
}

func TestKubeletSettingsWithoutCommands(t *testing.T) { // IM-02
	root := t.TempDir()
	s, err := cloudinit.RenderScript(cloudinit.BootstrapData{Value: []byte("#cloud-config\n"), Format: "cloud-config"}, node, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	run(t, root, s.Body)
	if got, want := read(t, root, "etc/default/kubelet"), "KUBELET_EXTRA_ARGS=\" --node-ip=172.31.0.2 --provider-id=slipway:///slipway-default-a-01234567\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The packages of the kubelet of RHEL and its relatives have the file whose flags their unit reads.
func TestKubeletSettingsOfRHEL(t *testing.T) { // IM-02
	root := t.TempDir()
	s, err := cloudinit.RenderScript(cloudinit.BootstrapData{Value: []byte("#cloud-config\n"), Format: "cloud-config"}, node, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "etc/sysconfig"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "etc/sysconfig/kubelet"), []byte("KUBELET_EXTRA_ARGS=--v=4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, root, s.Body)
	if got, want := read(t, root, "etc/sysconfig/kubelet"), "KUBELET_EXTRA_ARGS=--v=4\nKUBELET_EXTRA_ARGS=\"--v=4 --node-ip=172.31.0.2 --provider-id=slipway:///slipway-default-a-01234567\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The error of a pull says what to do on a machine without a way out, unless something else is said of registries.
func TestOffline(t *testing.T) {
	const place, theirs = "etc/containerd/certs.d/_default", "server = \"https://mirror\"\n"
	elsewhere, err := os.MkdirTemp("/dev/shm", "mounted")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(elsewhere) })
	folder := func(path string) func(string) error {
		return func(root string) error { return os.MkdirAll(filepath.Join(root, path), 0o755) }
	}
	cases := map[string]struct {
		reason  string
		online  bool
		prepare func(root string) error
		data    func(root string) string
		want    string
	}{
		"a node image":  {"says what to do", false, folder("etc/containerd"), nil, "use-slipway-image-load"},
		"internet":      {"pulls work there", true, folder("etc/containerd"), nil, ""},
		"another image": {"without containerd there is nothing to tell", false, folder("etc"), nil, ""},
		"image with a mirror": {"it is kept", false, func(root string) error {
			return errors.Join(folder(place)(root), os.WriteFile(filepath.Join(root, place, "hosts.toml"), []byte(theirs), 0o600))
		}, nil, theirs},
		"data with a mirror": {"it comes later", false, folder("etc/containerd"), func(root string) string {
			return "runcmd:\n- [sh, -c, \"echo 'server = \\\"https://mirror\\\"' >" + root + "/" + place + "/hosts.toml\"]\n"
		}, theirs},
		"mounted": {"what is the host's is not written to", false, func(root string) error {
			return errors.Join(folder("etc/containerd")(root), os.Symlink(elsewhere, filepath.Join(root, "etc/containerd/certs.d")))
		}, nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := tc.prepare(root); err != nil {
				t.Fatal(err)
			}
			n, data := node, ""
			n.Offline = !tc.online
			if tc.data != nil {
				data = tc.data(root)
			}
			s, err := cloudinit.RenderScript(cloudinit.BootstrapData{Value: []byte("#cloud-config\n" + data)}, n, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			run(t, root, s.Body)
			got, err := os.ReadFile(filepath.Join(root, place, "hosts.toml"))
			if tc.want == "" && !os.IsNotExist(err) || !strings.Contains(string(got), tc.want) {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	cases := map[string]struct {
		reason string
		data   cloudinit.BootstrapData
		want   string
	}{
		"ignition":   {"another format", cloudinit.BootstrapData{Value: []byte("{}"), Format: "ignition"}, `"ignition"`},
		"not config": {"the parser's message is passed on", cloudinit.BootstrapData{Value: []byte("hello")}, "#cloud-config"},
	}
	for name, tc := range cases {
		_, err := cloudinit.RenderScript(tc.data, node, time.Minute)
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.UserMessage(err), tc.want) {
			t.Errorf("%s: %s: got %v", name, tc.reason, err)
		}
	}
}

// What bootstrap data keeps from others than root is known, to be masked in what its commands print.
func TestSecrets(t *testing.T) {
	data := `#cloud-config
write_files:
- path: /etc/app/env
  permissions: "0600"
  content: |
    # of demo-control-plane-x2c9f
    ID=0123456789abcdef0123
    DB_PASSWORD=hunter2
- path: /etc/app/shared
  content: "0123456789abcdef4567 PGPASSWORD=hunter3"
- path: /etc/app/token
  content: "hunter4\n"
- path: /etc/app/private.key
  content: "Zm9vYmFyYmF6cXV1eA=="
- path: /etc/app/later
  permissions: "0400"
  append: true
  content: "0123456789abcdef89ab"
- path: /etc/app/config.yaml
  permissions: "0600"
  content: "hunter6\n"
runcmd:
- "curl -H 'x-api-key: hunter5' https://host/"
`
	secrets, err := cloudinit.FindSecrets(cloudinit.BootstrapData{Value: []byte(data)}, node)
	if err != nil {
		t.Fatal(err)
	}
	log := "0123456789abcdef0123 hunter2 hunter3 hunter4 hunter5 Zm9vYmFyYmF6cXV1eA 0123456789abcdef89ab"
	if got, want := redact.MaskSecrets(log, secrets), strings.TrimSpace(strings.Repeat("*** ", 7)); got != want {
		t.Errorf("got %q; known are %q", got, secrets)
	}
	for _, word := range []string{"0123456789abcdef4567", "hunter6", "demo-control-plane-x2c9f", "/etc/app/token", "https://host/"} {
		if got := redact.MaskSecrets(word, secrets); got != word {
			t.Errorf("%q becomes %q; known are %q", word, got, secrets)
		}
	}
	big := "#cloud-config\nwrite_files:\n- path: /a\n  content: " + strings.Repeat("a", 2<<20)
	for name, data := range map[string]string{"too large": big, "no cloud-config": "hello"} {
		if _, err := cloudinit.FindSecrets(cloudinit.BootstrapData{Value: []byte(data)}, node); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
