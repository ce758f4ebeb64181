package remote_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/sshtest"
)

// programs stand for the programs of a host that change its kernel, units and users. Each records its command line.
const programs = `#!/bin/sh
root=@ROOT@
name=${0##*/}
echo "$name $*" >>$root/commands
for last; do :; done
case $name in
systemctl)
	case $1 in
	is-active | is-enabled) [ -e "$root/$1/$last" ] ;;
	start) mkdir -p $root/is-active && touch "$root/is-active/$last" ;;
	stop) rm -f "$root/is-active/$last" ;;
	cat) [ -e "$root/etc/systemd/system/$last" ] ;;
	esac
	;;
ip) cat "$root/ip $*" 2>/dev/null ;;
id | getent)
	grep -qx -- "$last" $root/existing 2>/dev/null || exit 1
	cat "$root/$name $last" 2>/dev/null
	exit 0
	;;
systemd-detect-virt) [ -e $root/container ] ;;
userdel) grep -vx -- "$last" $root/existing >$root/existing.new; mv $root/existing.new $root/existing ;;
*-save) ;;
esac
`

// sandbox returns a host that runs all scripts in its directory, and connects to it for a claim.
func sandbox(t *testing.T, claimID string) (*sshtest.Server, *remote.Host) {
	t.Helper()
	s := sshtest.Start(t)
	for _, name := range []string{
		"systemctl", "systemd-run", "modprobe", "ip", "nft", "iptables-save", "ip6tables-save", "iptables-restore", "ip6tables-restore", "ipvsadm", "ctr", "kubeadm",
		"id", "getent", "userdel", "groupdel", "usermod", "chage", "pkill", "journalctl", "umount", "sync",
		"rmmod", "systemd-detect-virt", "chpasswd",
	} {
		writeProgram(t, s, name, programs)
	}
	for _, dir := range []string{"/proc/self", "/sys/class/net", "/etc/systemd/system", "/run"} {
		if err := os.MkdirAll(s.Path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.WriteFile("/proc/self/mounts", "")
	library, scripts := readScripts(t, "facts", "preflight", "record-create", "record-delete", "bundle-begin", "bundle-finish", "bundle-remove", "node-prepare", "bootstrap-start", "bootstrap-progress", "node-reset")
	s.RunLocally(library, "root="+s.Root+"\nchown() { :; }\nsleep() { :; }\nkill() { echo \"kill $*\" >>$root/commands; }\n", scripts)
	return s, connectFor(t, s, claimID)
}

// writeProgram writes a program of the host. @ROOT@ stands for its directory.
func writeProgram(t *testing.T, s *sshtest.Server, name, text string) {
	t.Helper()
	s.WriteFile("/usr/local/sbin/"+name, strings.ReplaceAll(text, "@ROOT@", s.Root))
	if err := os.Chmod(s.Path("/usr/local/sbin/"+name), 0o755); err != nil {
		t.Fatal(err)
	}
}

func connectFor(t *testing.T, s *sshtest.Server, claimID string) *remote.Host {
	t.Helper()
	target := s.Target()
	target.ClaimID = claimID
	return connect(t, newPool(t, remote.Limits{}), target)
}

// commands returns the command lines of programs that ran.
func commands(t *testing.T, s *sshtest.Server) []string {
	t.Helper()
	text, err := os.ReadFile(s.Path("/commands"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

func exists(s *sshtest.Server, path string) bool {
	_, err := os.Lstat(s.Path(path))
	return err == nil
}

func record(t *testing.T, h *remote.Host) {
	t.Helper()
	if err := h.WriteRecord(t.Context(), remote.Record{ClaimID: claim}); err != nil {
		t.Fatal(err)
	}
}

// reset cleans a host, which must be clean afterwards.
func reset(t *testing.T, h *remote.Host) {
	t.Helper()
	if left, err := h.Reset(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("cleaning: %v %v", left, err)
	}
}

func reasonOf(err error) string {
	if f := fault.As(err); f != nil {
		return f.Reason
	}
	return ""
}

// failing returns the findings of the given checks. Paths in the sandbox are not those that make a finding fatal.
func failing(t *testing.T, h *remote.Host, checks ...string) (out []string) {
	t.Helper()
	found, err := h.Preflight(t.Context(), remote.PreflightOptions{ManagedBundle: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if slices.Contains(checks, f.Check) {
			out = append(out, f.Check+": "+f.Problem)
		}
	}
	return out
}

func TestPrepareTwice(t *testing.T) {
	s, h := sandbox(t, claim)
	record(t, h)
	b := sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": []byte("k"), "cni/bridge": []byte("c"), "images/control-plane.tar": []byte("i")})
	socket := s.Path("/run/containerd/containerd.sock")
	for range 2 {
		if found := failing(t, h, "ContainerRuntime", "Installation", "Content", "Kubelet"); len(found) > 0 {
			t.Errorf("what was prepared must pass the checks: %q", found)
		}
		if err := h.InstallBundle(t.Context(), b, nil); err != nil {
			t.Fatal(err)
		}
		if err := h.PrepareNode(t.Context(), b, remote.NodeSettings{}); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", socket) // containerd runs
		if err == nil {
			defer l.Close()
		}
	}
	other := connectFor(t, s, strings.Repeat("b", 26))
	_, resetErr := other.Reset(t.Context())
	for what, err := range map[string]error{"bundle": other.InstallBundle(t.Context(), b, nil), "prepare": other.PrepareNode(t.Context(), b, remote.NodeSettings{}), "reset": resetErr} {
		if reasonOf(err) != remote.ReasonClaimedByAnother {
			t.Errorf("%s for another claim: %v", what, err)
		}
	}
	reset(t, h)
	if exists(s, "/etc/containerd/config.toml") || exists(s, "/usr/local/bin/kubeadm") || !exists(s, "/etc/slipway/machine.json") {
		t.Error("files remain, or the record does not")
	}
}

// Settings that the operator corrects before the bootstrap data starts replace those of before, and containerd reads them.
func TestChangedSettings(t *testing.T) {
	s, h := sandbox(t, claim)
	record(t, h)
	b := sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": []byte("k"), "cni/bridge": []byte("c"), "images/control-plane.tar": []byte("i")})
	if err := h.InstallBundle(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	files := []string{"/etc/systemd/system/containerd.service.d/10-proxy.conf", "/etc/containerd/certs.d/_default/hosts.toml", "/etc/slipway/authorities/trusted.crt"}
	all := remote.NodeSettings{HTTPProxy: "http://proxy:1", RegistryMirrors: []string{"https://mirror"}, TrustedCAs: []byte("CA\n")}
	for _, step := range []struct {
		name     string
		settings remote.NodeSettings
		restarts bool
		files    int
	}{
		{"first", all, true, 3}, {"repeated", all, false, 3},
		{"corrected", remote.NodeSettings{HTTPProxy: "http://proxy:2", RegistryMirrors: all.RegistryMirrors, TrustedCAs: all.TrustedCAs}, true, 3},
		{"fewer", remote.NodeSettings{RegistryMirrors: all.RegistryMirrors}, true, 1}, {"none", remote.NodeSettings{}, true, 0}, {"none, repeated", remote.NodeSettings{}, false, 0},
	} {
		s.WriteFile("/commands", "")
		if err := h.PrepareNode(t.Context(), b, step.settings); err != nil {
			t.Fatal(err)
		}
		got := commands(t, s)
		stop, start := slices.Index(got, "systemctl stop containerd.service"), slices.Index(got, "systemctl start containerd.service")
		if start < 0 || (stop >= 0) != step.restarts || stop > start {
			t.Errorf("%s: %q", step.name, got)
		}
		found := 0
		for _, f := range files {
			if exists(s, f) {
				found++
			}
		}
		if found != step.files {
			t.Errorf("%s: %d files", step.name, found)
		}
	}
	reset(t, h)
}

func TestForeignContainerd(t *testing.T) {
	s, h := sandbox(t, "")
	if err := os.MkdirAll(s.Path("/run/containerd"), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", s.Path("/run/containerd/containerd.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if found := failing(t, h, "ContainerRuntime"); len(found) != 1 {
		t.Errorf("the container runtime of another program is found: %q", found)
	}
}

func TestInputIsComplete(t *testing.T) {
	s, h := sandbox(t, claim)
	record(t, h)
	b := sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": []byte("k"), "cni/bridge": []byte("c")})
	if err := h.InstallBundle(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []int{1, 40, 1 << 20} {
		s.LoseInput(lost)
		other := connectFor(t, s, claim)
		for what, err := range map[string]error{
			"bootstrap": other.StartBootstrap(t.Context(), bootstrapOf("#cloud-config\nruncmd: [\"echo hello\"]\n")),
			"prepare":   other.PrepareNode(t.Context(), b, remote.NodeSettings{}),
			"bundle":    other.InstallBundle(t.Context(), b, nil),
		} {
			if err == nil || !strings.Contains(err.Error(), "not arrived completely") {
				t.Errorf("%s without the last %d bytes: %v", what, lost, err)
			}
		}
	}
	if exists(s, "/run/slipway/bootstrap/data") || exists(s, "/var/lib/slipway/node/started") || exists(s, "/etc/containerd/config.toml") {
		t.Error("an incomplete input was used")
	}
	s.LoseInput(0)
	if err := h.StartBootstrap(t.Context(), bootstrapOf("#cloud-config\nruncmd: [\"echo hello\"]\n")); err != nil || !exists(s, "/var/lib/slipway/node/started") {
		t.Errorf("the complete data is started: %v", err)
	}
}

func bootstrapOf(data string) remote.Bootstrap {
	return remote.Bootstrap{ClaimID: claim, Name: "m1", Hostname: "h1", ProviderID: "ssh://" + claim, Address: "192.0.2.7", Data: []byte(data), Timeout: time.Minute}
}

func TestIncompleteRecord(t *testing.T) {
	s, h := sandbox(t, claim)
	s.LoseInput(5)
	if err := h.WriteRecord(t.Context(), remote.Record{ClaimID: claim}); err == nil || exists(s, "/etc/slipway/machine.json") {
		t.Errorf("an incomplete record: %v", err)
	}
	s.LoseInput(0)
	record(t, h)
}

func TestResetWithoutTrace(t *testing.T) {
	cases := map[string]struct {
		reason  string
		claimID string
		change  func(*sshtest.Server)
		want    string
		stopped bool
	}{
		"nothing":     {"the record was deleted after cleaning", claim, func(*sshtest.Server) {}, "", false},
		"kubelet":     {"somebody's node", claim, func(s *sshtest.Server) { kubelet(s) }, "NoInventory", false},
		"no claim":    {"somebody's node", "", func(s *sshtest.Server) { kubelet(s) }, "NoInventory", false},
		"unrecorded":  {"the operator wants it", "unrecorded", func(s *sshtest.Server) { kubelet(s) }, "", true},
		"is recorded": {"the claim of another", "unrecorded", func(s *sshtest.Server) { s.WriteFile("/etc/slipway/machine.json", "{}") }, remote.ReasonClaimedByAnother, false},
		"no inventory": {"it was deleted", claim, func(s *sshtest.Server) {
			s.WriteFile("/etc/slipway/machine.json", "{\n  \"claimID\": \""+claim+"\"\n}\n")
		}, "NoInventory", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, h := sandbox(t, tc.claimID)
			s.WriteFile("/var/log/pods/a", "")
			tc.change(s)
			if _, err := h.Reset(t.Context()); reasonOf(err) != tc.want || (err != nil) != (tc.want != "") {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if got := slices.Contains(commands(t, s), "systemctl stop kubelet.service"); got != tc.stopped || exists(s, "/var/log/pods/a") == tc.stopped {
				t.Errorf("%s: stopped %v", tc.reason, got)
			}
		})
	}
}

// kubelet lets a kubelet run on the host.
func kubelet(s *sshtest.Server) {
	for _, file := range []string{"/var/lib/kubelet/config.yaml", "/is-active/kubelet.service", "/is-active/kubelet", "/etc/systemd/system/kubelet.service"} {
		s.WriteFile(file, "")
	}
}

func TestKubeletOfAnother(t *testing.T) {
	s, h := sandbox(t, claim)
	kubelet(s)
	if err := h.WriteRecord(t.Context(), remote.Record{ClaimID: claim}); reasonOf(err) != "KubeletRunning" || exists(s, "/etc/slipway/machine.json") {
		t.Errorf("a node of another cluster is not claimed: %v", err)
	}
	if err := os.Remove(s.Path("/var/lib/kubelet/config.yaml")); err != nil {
		t.Fatal(err)
	}
	record(t, h) // a kubelet that is restarted until there is a configuration
	reset(t, h)
	if slices.Contains(commands(t, s), "systemctl stop kubelet.service") || !exists(s, "/is-active/kubelet.service") {
		t.Error("nothing was bootstrapped, so the kubelet goes on")
	}
}

func TestContentOfBefore(t *testing.T) {
	s, h := sandbox(t, claim)
	kept := []string{"/etc/kubernetes/audit/policy.yaml", "/var/lib/etcd/member/snap/db", "/var/lib/kubelet/old", "/etc/cni/net.d/05-other.conf"}
	for _, file := range kept {
		s.WriteFile(file, "before")
	}
	if found := failing(t, h, "Content"); len(found) != 3 {
		t.Errorf("the host has data of another node: %q", found)
	}
	record(t, h)
	if err := h.StartBootstrap(t.Context(), bootstrapOf("#cloud-config\nruncmd: [\"kubeadm join\"]\n")); err != nil {
		t.Fatal(err)
	}
	added := []string{"/etc/kubernetes/pki/ca.crt", "/var/lib/etcd/member/wal/1", "/var/lib/kubelet/pods/a/b", "/etc/cni/net.d/10-flannel.conflist", "/run/flannel/subnet.env"}
	for _, file := range added {
		s.WriteFile(file, "node")
	}
	if found := failing(t, h, "Content"); len(found) != 3 {
		t.Errorf("what the node added is not the content of before: %q", found)
	}
	reset(t, h)
	for _, file := range kept {
		if !exists(s, file) {
			t.Errorf("%s was on the host before", file)
		}
	}
	for _, file := range append(added, "/etc/kubernetes/pki", "/var/lib/kubelet/pods") {
		if exists(s, file) {
			t.Errorf("%s remains", file)
		}
	}
	if !slices.Contains(commands(t, s), "kubeadm reset --force --skip-phases=preflight,remove-etcd-member") {
		t.Error("without a runtime of Slipway, kubeadm removes the containers of a node that was started")
	}
	if err := h.DeleteRecord(t.Context(), claim); err != nil || exists(s, "/var/lib/slipway/node") {
		t.Errorf("the state of the node goes with the record: %v", err)
	}
	reset(t, h)
}

func TestBootstrapDataIsUndone(t *testing.T) {
	s, h := sandbox(t, claim)
	s.WriteFile("/existing", "admin\n")
	s.WriteFile("/getent admin", "admin:x:1000:1000::"+s.Path("/home/admin")+":/bin/sh\n")
	s.WriteFile("/etc/shadow", "root:*:1::::::\nadmin:$6$hash:1:0:99999:7::20000:\n")
	s.WriteFile("/home/admin/.ssh/authorized_keys", "key of the operator\n")
	s.WriteFile("/etc/motd", "before\n")
	s.WriteFile("/etc/default/kubelet", "KUBELET_EXTRA_ARGS=\n")
	s.WriteFile("/etc/sysconfig/kubelet", "KUBELET_EXTRA_ARGS=--v=4\n")
	record(t, h)
	data := "#cloud-config\nwrite_files:\n- {path: " + s.Path("/etc/motd") + ", content: x, append: true}\n- {path: " + s.Path("/etc/evil") + ", content: x}\n" +
		"users:\n- {name: mallory, groups: [wheels], sudo: \"ALL=(ALL) NOPASSWD:ALL\", homedir: " + s.Path("/home/mallory") + "}\n- {name: admin, ssh_authorized_keys: [k]}\n"
	if err := h.StartBootstrap(t.Context(), bootstrapOf(data)); err != nil {
		t.Fatal(err)
	}
	// What the data does on a host.
	s.WriteFile("/existing", "admin\nmallory\n")
	s.WriteFile("/etc/motd", "before\nx")
	s.WriteFile("/etc/default/kubelet", "KUBELET_EXTRA_ARGS=--provider-id=x\n")
	s.WriteFile("/etc/sysconfig/kubelet", "KUBELET_EXTRA_ARGS=--provider-id=x\n")
	s.WriteFile("/etc/evil", "x")
	s.WriteFile("/home/mallory/.ssh/authorized_keys", "k")
	s.WriteFile("/home/admin/.ssh/authorized_keys", "key of the operator\nk\n")
	s.WriteFile("/etc/shadow", "root:*:1::::::\nadmin:!$6$hash:1:0:99999:7::1:\n")
	writeProgram(t, s, "chpasswd", "#!/bin/sh\necho \"chpasswd $* <$(cat)\" >>@ROOT@/commands\n")
	s.WriteFile("/var/lib/slipway/node/enabled", "evil.service\nkubelet.service\n")
	reset(t, h)
	for file, want := range map[string]string{"/etc/motd": "before\n", "/etc/default/kubelet": "KUBELET_EXTRA_ARGS=\n", "/etc/sysconfig/kubelet": "KUBELET_EXTRA_ARGS=--v=4\n", "/home/admin/.ssh/authorized_keys": "key of the operator\n", "/existing": "admin\n"} {
		if text, err := os.ReadFile(s.Path(file)); err != nil || string(text) != want {
			t.Errorf("%s: %q %v", file, text, err)
		}
	}
	if exists(s, "/etc/evil") || exists(s, "/home/mallory") {
		t.Error("files remain")
	}
	for _, want := range []string{"userdel -f mallory", "groupdel wheels", "chpasswd -e <admin:$6$hash", "chage -E 20000 admin", "systemctl disable --quiet --now evil.service"} {
		if !slices.Contains(commands(t, s), want) {
			t.Errorf("%q did not run", want)
		}
	}
	if got := s.Calls()[1].Parameters["FILE"]; !slices.Contains(got, "/etc/sudoers.d/90-cloud-init-users") {
		t.Errorf("the file with sudo rules is recorded: %q", got)
	}
}

func TestUnrecordableBootstrapData(t *testing.T) {
	_, h := sandbox(t, claim)
	record(t, h)
	many := "#cloud-config\nwrite_files:\n" + strings.Repeat("- {path: /x}\n", 1)
	for i := range 1001 {
		many += "- {path: /etc/x/" + strings.Repeat("x", i+1) + "}\n"
	}
	for name, data := range map[string]string{"many": many, "line break": "#cloud-config\nwrite_files:\n- {path: \"/etc/a\\nb\"}\n"} {
		if err := h.StartBootstrap(t.Context(), bootstrapOf(data)); reasonOf(err) != "UnrecordableBootstrapData" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBundleIsVerifiedAgain(t *testing.T) {
	s, h := sandbox(t, claim)
	record(t, h)
	b := sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": []byte("kubelet"), "cni/bridge": []byte("c")})
	if err := h.InstallBundle(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	file := s.Path("/var/lib/slipway/bundles/" + b.Digest + "/bin/kubelet")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	// The same size and time.
	if err := os.WriteFile(file, []byte("KUBELET"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := h.InstallBundle(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "kubelet" {
		t.Errorf("a changed program is used: %q %v", text, err)
	}
	s.WriteFile("/var/lib/slipway/bundles/"+b.Digest+"/preload/x", "")
	reset(t, h)
	if exists(s, "/var/lib/slipway/bundles/"+b.Digest+"/preload") || !exists(s, "/var/lib/slipway/bundles/"+b.Digest+"/complete") {
		t.Error("images that a node could change remain, or the bundle does not")
	}
}

// The images of a bundle are unpacked again for the next node. Reading its files once is enough for that: they have some hundred
// megabytes.
func TestBundleIsReadOnce(t *testing.T) {
	s, h := sandbox(t, claim)
	record(t, h)
	files := map[string][]byte{"bin/containerd": []byte("#!/bin/sh\nexit 1\n"), "images/node.tar": []byte("i")}
	for i := range 20 {
		files[fmt.Sprintf("lib/%d", i)] = []byte("l")
	}
	b := sshtest.WriteBundle(t, files)
	if err := h.InstallBundle(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Fatal(err)
	}
	writeProgram(t, s, "sha256sum", "#!/bin/sh\necho \"sha256sum $*\" >>@ROOT@/commands\nexec "+program+" \"$@\"\n")
	if err := h.InstallBundle(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	sums := 0
	for _, c := range commands(t, s) {
		if strings.HasPrefix(c, "sha256sum") {
			sums++
		}
	}
	if sums >= len(files) || !slices.Contains(commands(t, s), "sha256sum -c SHA256SUMS") {
		t.Errorf("sha256sum ran %d times for %d files", sums, len(files))
	}
}

// The unpacked images become those of the node, without a copy of a gigabyte, which cleaning would delete.
func TestUnpackedImagesAreMoved(t *testing.T) {
	s, h := sandbox(t, claim)
	record(t, h)
	b := sshtest.WriteBundle(t, map[string][]byte{"bin/containerd": []byte("#!/bin/sh\nexit 1\n"), "images/node.tar": []byte("i"), "cni/bridge": []byte("c")})
	if err := h.InstallBundle(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	preload := "/var/lib/slipway/bundles/" + b.Digest + "/preload"
	s.WriteFile(preload+"/content", "unpacked\n")
	if err := h.PrepareNode(t.Context(), b, remote.NodeSettings{}); err != nil {
		t.Fatal(err)
	}
	if exists(s, preload) || !exists(s, "/var/lib/containerd/content") {
		t.Error("the images were not moved")
	}
	// The preparation is repeated, for example after a restart of the manager.
	before := len(s.Calls())
	if err := h.InstallBundle(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	if calls := s.Calls()[before:]; len(calls) != 1 || calls[0].Script != "bundle-begin" {
		t.Errorf("the images were unpacked again: %d scripts", len(calls))
	}
}

func TestOtherProgramsAreLeft(t *testing.T) {
	s, h := sandbox(t, claim)
	s.WriteFile("/proc/net/ip_vs", "1\n2\n3\nTCP 0A000001:0050 rr\n")
	record(t, h)
	for _, name := range []string{"veth1a2b", "vxlan100", "cni-podman0", "cni0", "flannel.1"} {
		s.WriteFile("/sys/class/net/"+name, "")
	}
	s.WriteFile("/ip -o link show type veth", "7: veth1a2b@if6: <UP> mtu 1500 link-netns docker\n9: veth3c4d@if2: <UP> mtu 1500 qdisc noqueue link-netns cni-4711\n")
	s.WriteFile("/var/lib/slipway/node/installed", s.Path("/etc/systemd/system/containerd.service")+"\n")
	for pid, address := range map[string]string{"41": "/run/containerd/containerd.sock", "42": "/run/docker/containerd/containerd.sock"} {
		s.WriteFile("/proc/"+pid+"/comm", "containerd-shim\n")
		s.WriteFile("/proc/"+pid+"/cmdline", "containerd-shim-runc-v2\x00-address\x00"+s.Path(address)+"\x00")
	}
	if _, err := h.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range commands(t, s) {
		if strings.HasPrefix(line, "ip link del") || strings.HasPrefix(line, "kill") || strings.HasPrefix(line, "ipvsadm") {
			got = append(got, line)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"ip link del cni0", "ip link del flannel.1", "ip link del veth3c4d", "kill -9 41"}, got); diff != "" {
		t.Error(diff)
	}
}
