package remote_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/sshtest"
)

// makeDirectory creates a directory of the host.
func makeDirectory(t *testing.T, s *sshtest.Server, path string) {
	t.Helper()
	if err := os.MkdirAll(s.Path(path), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestNamesWithLineBreaks checks that the name of a Pod's file never names another file of the host.
func TestNamesWithLineBreaks(t *testing.T) {
	s, h := sandbox(t, claim)
	for _, file := range []string{"/etc/shadow", "/root/.ssh/authorized_keys"} {
		s.WriteFile(file, "before")
	}
	makeDirectory(t, s, "/var/lib/kubelet") // as a package of the kubelet leaves it
	s.WriteFile("/etc/cni/net.d/odd\nname", "before")
	record(t, h)
	attacks := []string{
		"/var/lib/kubelet/pods/1/volumes/x\n" + s.Path("/etc/shadow"),
		"/var/lib/kubelet/pods/1/volumes/x\ncontent " + s.Path("/etc/shadow"),
		"/var/lib/kubelet/pods/1/volumes/x\n" + s.Path("/root/.ssh/authorized_keys"),
		"/var/lib/kubelet/pods/1/volumes/\x01" + s.Path("/etc/shadow"),
		"/var/lib/kubelet/pods/1/volumes/\n\n\\ ",
	}
	for _, file := range attacks {
		s.WriteFile(file, "attack")
	}
	s.WriteFile("/etc/cni/net.d/new", "node")
	reset(t, h)
	for _, file := range []string{"/etc/shadow", "/root/.ssh/authorized_keys", "/etc/cni/net.d/odd\nname", "/var/lib/kubelet"} {
		if !exists(s, file) {
			t.Errorf("%q was there before", file)
		}
	}
	if exists(s, "/var/lib/kubelet/pods") || exists(s, "/etc/cni/net.d/new") {
		t.Error("what Pods wrote remains")
	}
	// Which entries with line breaks were there before is not known, so they are reported.
	s.WriteFile("/etc/cni/net.d/second\nodd", "node")
	if left, err := h.Reset(t.Context()); err != nil || len(left) != 1 || left[0].Kind != "content" {
		t.Errorf("cleaning: %v %v", left, err)
	}
}

// ran returns the command lines that ran and begin with a word.
func ran(t *testing.T, s *sshtest.Server, words ...string) (out []string) {
	t.Helper()
	for _, line := range commands(t, s) {
		if word, _, _ := strings.Cut(line, " "); slices.Contains(words, word) {
			out = append(out, line)
		}
	}
	return out
}

func TestModules(t *testing.T) {
	s, h := sandbox(t, claim)
	writeProgram(t, s, "modprobe", `#!/bin/sh
echo "modprobe $*" >>@ROOT@/commands
case $* in "-n -v overlay" | "-n -v br_netfilter") echo insmod /lib/modules/x.ko ;; "-n -v vxlan") echo install /bin/false ;; -q*) mkdir -p @ROOT@/sys/module/$2 ;; esac
`)
	writeProgram(t, s, "rmmod", "#!/bin/sh\necho \"rmmod $*\" >>@ROOT@/commands\nrmdir @ROOT@/sys/module/$1\n")
	writeProgram(t, s, "systemd-detect-virt", "#!/bin/sh\nexit 1\n")
	if found := failing(t, h, "KernelModules"); len(found) != 1 || !strings.Contains(found[0], "VXLAN") {
		t.Errorf("a module may be loaded later: %q", found)
	}
	if got := ran(t, s, "modprobe", "ip"); slices.ContainsFunc(got, func(line string) bool {
		return !strings.HasPrefix(line, "modprobe -n") && !strings.HasPrefix(line, "ip -o link show")
	}) || len(got) == 0 {
		t.Errorf("a check must change nothing: %q", got)
	}
	makeDirectory(t, s, "/sys/module/overlay")
	s.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", "1\n")
	record(t, h)
	b := sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": []byte("k"), "cni/bridge": []byte("c")})
	for _, err := range []error{h.InstallBundle(t.Context(), b, nil), h.PrepareNode(t.Context(), b, remote.NodeSettings{})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	reset(t, h)
	if diff := cmp.Diff([]string{"rmmod br_netfilter", "rmmod vxlan"}, ran(t, s, "rmmod")); diff != "" {
		t.Errorf("the modules of the node, but not the one of before: %s", diff)
	}
	if text, err := os.ReadFile(s.Path("/proc/sys/net/bridge/bridge-nf-call-iptables")); err != nil || string(text) != "0\n" {
		t.Errorf("the traffic of bridges is filtered: %q %v", text, err)
	}
}

func TestDirectoriesOfTheRuntime(t *testing.T) {
	s, h := sandbox(t, claim)
	s.WriteFile("/var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db", "another runtime")
	if found := failing(t, h, "Content"); len(found) != 1 || !strings.Contains(found[0], "/var/lib/containerd contains ") {
		t.Errorf("the images of another containerd would be used: %q", found)
	}
	if err := os.RemoveAll(s.Path("/var/lib/containerd/io.containerd.metadata.v1.bolt")); err != nil {
		t.Fatal(err)
	}
	makeDirectory(t, s, "/var/lib/containerd/lost+found") // a disk of its own
	if found := failing(t, h, "Content"); len(found) != 0 {
		t.Errorf("the disk is empty: %q", found)
	}
	kept := map[string]string{"/opt/cni/bin/bridge": "bridge of before", "/opt/cni/bin/.hidden": "before", "/opt/cni/bin/a.b": "before", "/opt/cni/bin/lost": "before"}
	for file, text := range kept {
		s.WriteFile(file, text)
	}
	if err := os.Symlink("bridge", s.Path("/opt/cni/bin/link")); err != nil {
		t.Fatal(err)
	}
	record(t, h)
	b := sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": []byte("k"), "cni/bridge": []byte("c"), "cni/vlan": []byte("v")})
	for _, err := range []error{h.InstallBundle(t.Context(), b, nil), h.PrepareNode(t.Context(), b, remote.NodeSettings{})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/1/fs/secret", "/opt/cni/bin/backdoor",
		"/opt/cni/bin/aXb", "/opt/cni/bin/x\nplugin y /opt/cni/bin/bridge", "/opt/cni/bin/dir/backdoor"} {
		s.WriteFile(file, "tenant")
	}
	s.WriteFile("/opt/cni/bin/bridge", "bridge of the tenant")
	if err := os.Remove(s.Path("/opt/cni/bin/lost")); err != nil {
		t.Fatal(err)
	}
	reset(t, h)
	names := func(dir string) (out []string) {
		entries, err := os.ReadDir(s.Path(dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	if diff := cmp.Diff([]string{"lost+found"}, names("/var/lib/containerd")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{".hidden", "a.b", "bridge", "link", "lost"}, names("/opt/cni/bin")); diff != "" {
		t.Error(diff)
	}
	for file, want := range kept {
		if text, err := os.ReadFile(s.Path(file)); err != nil || string(text) != want {
			t.Errorf("%s: %q %v", file, text, err)
		}
	}
	if err := os.RemoveAll(s.Path("/var/lib/slipway/node/plugins")); err != nil {
		t.Fatal(err)
	}
	s.WriteFile("/opt/cni/bin/bridge", "bridge of the tenant")
	if left, err := h.Reset(t.Context()); err != nil || len(left) != 1 || left[0].Kind != "plugin" {
		t.Errorf("what cannot be restored is reported: %v %v", left, err)
	}
}

// TestRoutesSurviveForwarding checks that interfaces accept router advertisements while a host forwards, and that each
// has its own settings again afterwards.
func TestRoutesSurviveForwarding(t *testing.T) {
	s, h := sandbox(t, claim)
	settings := map[string]string{
		"ipv4/ip_forward": "0", "ipv4/conf/all/forwarding": "0", "ipv4/conf/all/accept_redirects": "0", "ipv4/conf/eth0/forwarding": "0", "ipv4/conf/br0/forwarding": "1",
		"ipv6/conf/all/forwarding": "0", "ipv6/conf/all/accept_ra": "1", "ipv6/conf/default/accept_ra": "1", "ipv6/conf/lo/accept_ra": "1",
		"ipv6/conf/eth0.7/accept_ra": "1", "ipv6/conf/eth0.7/forwarding": "0", "ipv6/conf/eth1/accept_ra": "0", "ipv6/conf/br0/accept_ra": "2", "ipv6/conf/br0/forwarding": "1",
	}
	for name, value := range settings {
		s.WriteFile("/proc/sys/net/"+name, value+"\n")
	}
	read := func(name string) string {
		text, err := os.ReadFile(s.Path("/proc/sys/net/" + name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	record(t, h)
	b := sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": []byte("k"), "cni/bridge": []byte("c")})
	if err := h.InstallBundle(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := h.PrepareNode(t.Context(), b, remote.NodeSettings{}); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"ipv6/conf/all/forwarding": "1", "ipv6/conf/eth0.7/accept_ra": "2", "ipv6/conf/eth1/accept_ra": "0", "ipv6/conf/default/accept_ra": "1", "ipv6/conf/lo/accept_ra": "1"} {
			if got := read(name); got != want {
				t.Errorf("%s of a node is %s", name, got)
			}
		}
		if text, err := os.ReadFile(s.Path("/etc/sysctl.d/91-slipway-interfaces.conf")); err != nil || string(text) != "net/ipv6/conf/eth0.7/accept_ra = 2\n" {
			t.Errorf("the setting survives a boot: %q %v", text, err)
		}
		// The kernel changes all interfaces.
		for _, name := range []string{"ipv4/conf/all/forwarding", "ipv4/conf/eth0/forwarding", "ipv6/conf/eth0.7/forwarding"} {
			s.WriteFile("/proc/sys/net/"+name, "1\n")
		}
	}
	// The kernel does this when forwarding ends, before the interfaces are restored.
	for name, value := range map[string]string{"ipv4/conf/all/accept_redirects": "1", "ipv4/conf/br0/forwarding": "0", "ipv6/conf/br0/forwarding": "0"} {
		s.WriteFile("/proc/sys/net/"+name, value+"\n")
	}
	reset(t, h)
	for name, want := range settings {
		if got := read(name); got != want {
			t.Errorf("%s is %s, and was %s", name, got, want)
		}
	}
	if exists(s, "/etc/sysctl.d/91-slipway-interfaces.conf") {
		t.Error("a file remains")
	}
}

// tables is an output of iptables-save. Podman of older distributions has the plugins of Kubernetes as well.
const tables = `# Generated by iptables-save
*nat
:PREROUTING ACCEPT [7:420]
:POSTROUTING ACCEPT [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:CNI-aaaa - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A POSTROUTING -s 10.88.0.2/32 -m comment --comment "name: \"podman\" id: \"1\"" -j CNI-aaaa
-A CNI-aaaa ! -d 224.0.0.0/4 -j MASQUERADE
COMMIT
*filter
:INPUT DROP [0:0]
-A INPUT -p tcp --dport 22 -j ACCEPT
COMMIT
`

func TestPacketFilters(t *testing.T) {
	s, h := sandbox(t, claim)
	for _, family := range []string{"iptables", "ip6tables"} {
		writeProgram(t, s, family+"-save", "#!/bin/sh\ncat @ROOT@/"+family+" 2>/dev/null\n")
		writeProgram(t, s, family+"-restore", "#!/bin/sh\necho "+family+"-restore >>@ROOT@/commands\ncat >@ROOT@/"+family+".new\nmv @ROOT@/"+family+".new @ROOT@/"+family+"\n")
	}
	makeDirectory(t, s, "/sys/module/nf_tables")
	s.WriteFile("/iptables", tables)
	if found := failing(t, h, "FormerNode"); len(found) != 0 {
		t.Errorf("Podman may stay: %q", found)
	}
	record(t, h)
	if err := h.StartBootstrap(t.Context(), bootstrapOf("#cloud-config\nruncmd: [\"kubeadm join\"]\n")); err != nil {
		t.Fatal(err)
	}
	node := strings.NewReplacer(
		":CNI-aaaa - [0:0]\n", ":CNI-DN-bbbb - [0:0]\n:CNI-aaaa - [1:60]\n:KUBE-POSTROUTING - [0:0]\n:cali-nat - [0:0]\n",
		"-A CNI-aaaa", "-A POSTROUTING -m comment --comment \"kubernetes postrouting rules\" -j KUBE-POSTROUTING\n-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment \"dnat name: \\\"cbr0\\\"\" -j CNI-DN-bbbb\n-A CNI-DN-bbbb -j RETURN\n-A CNI-aaaa",
		"-A INPUT -p tcp", "-A INPUT -m comment --comment \"cali:S93h\" -j ACCEPT\n-A INPUT -p tcp",
	).Replace(tables)
	s.WriteFile("/iptables", node)
	s.WriteFile("/ip6tables", "*filter\n:INPUT ACCEPT [0:0]\n:KUBE-FIREWALL - [0:0]\n-A INPUT -j KUBE-FIREWALL\nCOMMIT\n")
	if found := failing(t, h, "FormerNode"); len(found) != 0 {
		t.Errorf("the claim's own node is no former node: %q", found)
	}
	reset(t, h)
	for name, want := range map[string]string{"/iptables": strings.Replace(tables, ":CNI-aaaa - [0:0]", ":CNI-aaaa - [1:60]", 1), "/ip6tables": "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n"} {
		text, err := os.ReadFile(s.Path(name))
		if diff := cmp.Diff(want, string(text)); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	if err := h.DeleteRecord(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	reset(t, h) // again, after the record was deleted
	if got := ran(t, s, "iptables-restore", "ip6tables-restore"); len(got) != 2 {
		t.Errorf("rules are written only if something is removed: %q", got)
	}
}

// TestFormerNode checks that the remains of a node prevent another one until they are removed.
func TestFormerNode(t *testing.T) {
	s, h := sandbox(t, "unrecorded")
	makeDirectory(t, s, "/sys/module/ip_tables")
	writeProgram(t, s, "iptables-save", "#!/bin/sh\n[ -e @ROOT@/clean ] || printf '*nat\\n:KUBE-SERVICES - [0:0]\\n:CNI-aaaa - [0:0]\\n-A PREROUTING -j KUBE-SERVICES\\nCOMMIT\\n'\n")
	writeProgram(t, s, "iptables-restore", "#!/bin/sh\ncat >@ROOT@/clean\n")
	writeProgram(t, s, "ip", "#!/bin/sh\necho \"ip $*\" >>@ROOT@/commands\n[ \"$1 $2\" != 'link del' ] || rm -rf @ROOT@/sys/class/net/$3\n")
	for _, name := range []string{"cni0", "eth0", "cni-podman0"} {
		s.WriteFile("/sys/class/net/"+name+"/operstate", "up\n")
	}
	s.WriteFile("/sys/class/net/tunl0/operstate", "down\n")
	s.WriteFile("/etc/cni/net.d/10-calico.conflist", "{}")
	s.WriteFile("/etc/cni/net.d/87-podman-bridge.conflist", "{}")
	s.WriteFile("/etc/kubernetes/pki/ca.crt", "node")
	s.WriteFile("/opt/cni/bin/bridge", "of a package")
	found, err := h.Preflight(t.Context(), remote.PreflightOptions{ManagedBundle: true})
	if err != nil {
		t.Fatal(err)
	}
	former, want := []string{}, []string{
		"/etc/cni/net.d/10-calico.conflist configures the Pod network of a former node",
		"/etc/kubernetes contains files of another node", "the host has the iptables chain KUBE-SERVICES of a former node", "the host has the network device cni0 of a former node",
	}
	for _, f := range found {
		if f.FormerNode {
			former = append(former, strings.ReplaceAll(f.Problem, s.Root, ""))
		}
		if f.Check == "PodNetwork" && f.Fatal {
			t.Error("Podman may stay")
		}
	}
	slices.Sort(former)
	if diff := cmp.Diff(want, former); diff != "" {
		t.Error(diff)
	}
	reset(t, h)
	if found := failing(t, h, "FormerNode", "Content"); len(found) != 0 || !exists(s, "/etc/cni/net.d/87-podman-bridge.conflist") {
		t.Errorf("the remedy works, and nothing else is removed: %q", found)
	}
}

// TestRecordWasDeleted checks that a host whose record was deleted before it was cleaned is rejected before a claim, and
// can be cleaned.
func TestRecordWasDeleted(t *testing.T) {
	s, h := sandbox(t, "unrecorded")
	record(t, h)
	if err := h.StartBootstrap(t.Context(), bootstrapOf("#cloud-config\nruncmd: [\"kubeadm join\"]\n")); err != nil {
		t.Fatal(err)
	}
	if found := failing(t, h, "FormerNode"); len(found) != 0 {
		t.Errorf("there is a record: %q", found)
	}
	if err := os.Remove(s.Path("/etc/slipway/machine.json")); err != nil {
		t.Fatal(err)
	}
	if found := failing(t, h, "FormerNode"); len(found) != 1 {
		t.Errorf("the record is missing: %q", found)
	}
	other := remote.Record{ClaimID: strings.Repeat("b", 26)}
	if err := h.WriteRecord(t.Context(), other); reasonOf(err) != "UnrecordedNode" {
		t.Errorf("recording another claim: %v", err)
	}
	reset(t, h)
	if found := failing(t, h, "FormerNode"); len(found) != 0 {
		t.Errorf("the remedy works: %q", found)
	}
	if err := h.WriteRecord(t.Context(), other); err != nil {
		t.Error(err)
	}
}

func TestDiskOfPreparedHost(t *testing.T) {
	_, h := sandbox(t, claim)
	record(t, h)
	b := sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": make([]byte, 3<<20), "cni/bridge": []byte("c")})
	full := func() bool {
		found, err := h.Preflight(t.Context(), remote.PreflightOptions{ManagedBundle: true, BundleBytes: 1 << 60, BundleDigest: b.Digest})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(found, func(f remote.Finding) bool {
			return strings.HasPrefix(f.Problem, "/tmp") || strings.HasPrefix(f.Problem, "/var/lib has")
		})
	}
	if !full() {
		t.Error("there is no room for the bundle")
	}
	for _, err := range []error{h.InstallBundle(t.Context(), b, nil), h.PrepareNode(t.Context(), b, remote.NodeSettings{})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if full() {
		t.Error("the manager was restarted when the host was prepared")
	}
}

// TestPodsOfOthers checks that cleaning ends the Pods of the host's own node only.
func TestPodsOfOthers(t *testing.T) {
	for version, want := range map[string][]string{"1": {"kill -9 11 12 13 15"}, "2": {"kill -9 11 12"}} {
		s, h := sandbox(t, claim)
		if version == "2" {
			s.WriteFile("/sys/fs/cgroup/cgroup.controllers", "cpu")
		}
		record(t, h)
		if err := h.StartBootstrap(t.Context(), bootstrapOf("#cloud-config\nruncmd: [\"kubeadm join\"]\n")); err != nil {
			t.Fatal(err)
		}
		for group, process := range map[string]string{
			"kubepods/besteffort/pod1/c": "11", "kubepods.slice/kubepods-pod1.slice": "12", "memory/kubepods/pod1": "13", "systemd/kubepods.slice/pod2": "15",
			"system.slice/docker-4711.scope/kubelet.slice/kubepods/pod1": "21", "system.slice/docker-4711.scope/kubepods.slice/pod1": "22",
			"machine.slice/libpod-1.scope/kubepods": "23", "memory/docker/4711/kubepods": "24",
		} {
			s.WriteFile("/sys/fs/cgroup/"+group+"/cgroup.procs", process+"\n")
		}
		reset(t, h)
		var killed []string
		for _, line := range ran(t, s, "kill") {
			if !slices.Contains(killed, line) {
				killed = append(killed, line)
			}
		}
		if diff := cmp.Diff(want, killed); diff != "" {
			t.Errorf("version %s: %s", version, diff)
		}
	}
}

// TestMountsThatHang checks that file servers that are gone do not hold the lock of a host.
func TestMountsThatHang(t *testing.T) {
	s, h := sandbox(t, claim)
	library, scripts := readScripts(t, "node-reset")
	s.RunLocally(library, "kill() { :; }\n", scripts) // with the pauses between two looks
	kubelet := s.Path("/var/lib/kubelet")
	record(t, h)
	s.WriteFile("/proc/self/mounts", "server:/a "+kubelet+"/pods/1/nfs nfs4 rw 0 0\ntmpfs "+kubelet+"/pods/1/a\\040b* tmpfs rw 0 0\n/dev/sdb "+kubelet+"/pods/1/disk ext4 rw 0 0\n")
	writeProgram(t, s, "umount", `#!/bin/sh
echo "umount $*" >>@ROOT@/commands
for at; do :; done
case "$*" in
*nfs | -i*) sed -i "\| $(echo "$at" | sed 's/ /\\\\040/; s/[*]/\\*/') |d" @ROOT@/proc/self/mounts ;;
*disk) exit 32 ;;
*) sed -i '/tmpfs/d' @ROOT@/proc/self/mounts ;;
esac
`)
	reset(t, h)
	want := []string{"umount -i -l " + kubelet + "/pods/1/nfs", "umount " + kubelet + "/pods/1/disk", "umount -i -l " + kubelet + "/pods/1/disk", "umount " + kubelet + "/pods/1/a b*"}
	if diff := cmp.Diff(want, ran(t, s, "umount")); diff != "" {
		t.Error(diff)
	}
	if names, err := os.ReadDir(s.Path("/var/lib/slipway/node")); err != nil || slices.ContainsFunc(names, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "ended") }) {
		t.Errorf("files remain: %v", err)
	}
}

// TestPreparationIsEnded checks that cleaning does not wait for a preparation that nobody waits for.
func TestPreparationIsEnded(t *testing.T) {
	s, h := sandbox(t, claim)
	record(t, h)
	for process, file := range map[string]string{"41": "/var/lib/slipway/preparing", "42": "/var/lib/slipway/lock", "43": "/var/log/x"} {
		makeDirectory(t, s, "/proc/"+process+"/fd")
		if err := os.Symlink(s.Path(file), s.Path("/proc/"+process+"/fd/8")); err != nil {
			t.Fatal(err)
		}
	}
	other := connectFor(t, s, strings.Repeat("b", 26))
	if _, err := other.Reset(t.Context()); reasonOf(err) != remote.ReasonClaimedByAnother || len(ran(t, s, "kill")) > 0 {
		t.Errorf("the preparation is that of another claim: %v", err)
	}
	s.WriteFile("/var/lib/slipway/bundles/x/preload.draft/tmpmounts/a", "")
	s.WriteFile("/run/containerd/x", "")
	reset(t, h)
	if got := ran(t, s, "kill"); len(got) == 0 || slices.ContainsFunc(got, func(line string) bool { return line != "kill -9 41" }) {
		t.Errorf("the preparation is ended, and nothing else: %q", got)
	}
	if exists(s, "/var/lib/slipway/bundles/x/preload.draft") || exists(s, "/run/containerd") {
		t.Error("what it began remains")
	}
}

// TestPreparationIsMarked checks that the programs that a preparation starts can be found.
func TestPreparationIsMarked(t *testing.T) {
	s, h := sandbox(t, claim)
	record(t, h)
	writeProgram(t, s, "systemctl", "#!/bin/sh\n[ \"$1\" != start ] || echo \"fd $(readlink /proc/self/fd/8)\" >>@ROOT@/commands\n")
	b := sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": []byte("k"), "cni/bridge": []byte("c")})
	for _, err := range []error{h.InstallBundle(t.Context(), b, nil), h.PrepareNode(t.Context(), b, remote.NodeSettings{})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"fd " + s.Path("/var/lib/slipway/preparing")}, ran(t, s, "fd")); diff != "" {
		t.Error(diff)
	}
}

// TestProgressOfStart checks that bootstrap data has not failed while its unit is being started.
func TestProgressOfStart(t *testing.T) {
	s, h := sandbox(t, claim)
	record(t, h)
	if err := h.StartBootstrap(t.Context(), bootstrapOf("#cloud-config\nruncmd: [\"kubeadm join\"]\n")); err != nil {
		t.Fatal(err)
	}
	check := func(what string, state remote.BootstrapState, failure string) {
		t.Helper()
		if got, err := h.BootstrapProgress(t.Context(), claim); err != nil || got.State != state || got.Failure != failure {
			t.Errorf("%s: %+v %v", what, got, err)
		}
	}
	lock, err := os.OpenFile(s.Path("/var/lib/slipway/lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	check("the start holds the lock", remote.BootstrapRunning, "")
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	check("there is no unit", remote.BootstrapFailed, "stopped")
	s.WriteFile("/is-active/slipway-bootstrap.service", "")
	check("the unit runs", remote.BootstrapRunning, "")
	if err := os.RemoveAll(s.Path("/is-active")); err != nil {
		t.Fatal(err)
	}
	s.WriteFile("/run/slipway/bootstrap/exit", "7\n")
	check("the unit has ended", remote.BootstrapFailed, "")
	if err := os.RemoveAll(s.Path("/run/slipway")); err != nil {
		t.Fatal(err)
	}
	check("the host was rebooted", remote.BootstrapFailed, "reboot")
}

func TestFirewallsWithoutService(t *testing.T) {
	const open = "table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy accept;\n\t\ttcp dport 25 drop\n\t}\n\n\tchain other {\n\t\tdrop\n\t}\n" +
		"\n\tchain forward {\n\t\ttype filter hook forward priority filter; policy drop;\n\t}\n}\n"
	cases := map[string]struct {
		reason, nft, iptables string
		service               bool
		want                  int
	}{
		"none":       {"a host without rules", "", "", false, 0},
		"open":       {"single ports, and what Docker forwards", open, "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n-A INPUT -s 192.0.2.1/32 -j DROP\nCOMMIT\n", false, 0},
		"policy":     {"Debian's nftables.service", strings.Replace(open, "policy accept", "policy drop", 1), "", false, 1},
		"last rule":  {"as firewalls often end", strings.Replace(open, "tcp dport 25 drop", "counter packets 0 bytes 0 reject with icmpx admin-prohibited", 1), "", false, 1},
		"iptables":   {"plain rules", "", "*filter\n:INPUT DROP [0:0]\nCOMMIT\n", false, 1},
		"RHEL":       {"iptables-services", "", "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j REJECT --reject-with icmp-host-prohibited\nCOMMIT\n", false, 1},
		"by service": {"the service is reported", strings.Replace(open, "policy accept", "policy drop", 1), "", true, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, h := sandbox(t, claim)
			makeDirectory(t, s, "/sys/module/nf_tables")
			makeDirectory(t, s, "/sys/module/iptable_filter")
			s.WriteFile("/ruleset", tc.nft)
			s.WriteFile("/rules", tc.iptables)
			writeProgram(t, s, "nft", "#!/bin/sh\n[ \"$*\" != 'list ruleset' ] || cat @ROOT@/ruleset\n")
			writeProgram(t, s, "iptables-save", "#!/bin/sh\ncat @ROOT@/rules\n")
			if tc.service {
				s.WriteFile("/is-active/ufw.service", "")
			}
			found := failing(t, h, "Firewall")
			if len(found) != tc.want || tc.service && !strings.Contains(found[0], "ufw") {
				t.Errorf("%s: %q", tc.reason, found)
			}
		})
	}
}

// TestLogIsLimited runs the unit of bootstrap data whose output would fill the memory of the host.
func TestLogIsLimited(t *testing.T) {
	s, h := sandbox(t, claim)
	record(t, h)
	if err := h.StartBootstrap(t.Context(), bootstrapOf("#cloud-config\nruncmd: [\"kubeadm join\"]\n")); err != nil {
		t.Fatal(err)
	}
	s.WriteFile("/run/slipway/bootstrap/data", "head -c 20000000 /dev/zero; echo the end; exit 7\n")
	unit := exec.Command("/bin/sh", s.Path("/run/slipway/bootstrap/run"), claim, "60")
	if out, err := unit.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := os.Stat(s.Path("/run/slipway/bootstrap/log"))
	if err != nil || info.Size() != 1<<20 || info.Mode().Perm() != 0o600 {
		t.Errorf("the log: %v %v", info, err)
	}
	got, err := h.BootstrapProgress(t.Context(), claim)
	if err != nil || got.State != remote.BootstrapFailed || got.ExitCode != 7 || !strings.HasSuffix(string(got.Log), "the end\n") {
		t.Errorf("the end of the log shows the error: %s %d %v", got.State, got.ExitCode, err)
	}
	if exists(s, "/run/slipway/bootstrap/data") || exists(s, "/run/slipway/bootstrap/log.end") {
		t.Error("files remain")
	}
}

// TestIgnitionIsUndone checks that links, directories and masked units of an Ignition configuration are removed, and that
// directories and units of before are as they were.
func TestIgnitionIsUndone(t *testing.T) {
	s, h := sandbox(t, claim)
	makeDirectory(t, s, "/opt/before/content")
	makeDirectory(t, s, "/etc/systemd/system")
	if err := os.Symlink("old", s.Path("/etc/link")); err != nil {
		t.Fatal(err)
	}
	s.WriteFile("/is-active/timer.service", "")
	record(t, h)
	b := bootstrapOf(`{"ignition":{"version":"3.4.0"},"storage":{"directories":[{"path":"` + s.Path("/opt/new/a") + `"},{"path":"` + s.Path("/opt/before") + `","mode":511}],` +
		`"links":[{"path":"` + s.Path("/etc/link") + `","target":"x"},{"path":"` + s.Path("/opt/other/link") + `","target":"x"}],"files":[{"path":"` + s.Path("/opt/x/y/file") + `"}]},` +
		`"systemd":{"units":[{"name":"timer.service","mask":true},{"name":"idle.service","mask":true}]}}`)
	b.Format = "ignition"
	if err := h.StartBootstrap(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if got := s.Calls()[1].Parameters["FILE"]; !slices.Contains(got, "/etc/systemd/system/timer.service") {
		t.Errorf("the link of the masked unit is recorded: %q", got)
	}
	// What the data does on a host.
	for _, file := range []string{"/opt/new/a/content", "/opt/new/b", "/opt/x/y/file", "/opt/other/other"} {
		s.WriteFile(file, "node")
	}
	if err := os.Chmod(s.Path("/opt/before"), 0o777); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"/etc/link": "x", "/opt/other/link": "x"} {
		_ = os.Remove(s.Path(link))
		if err := os.Symlink(target, s.Path(link)); err != nil {
			t.Fatal(err)
		}
	}
	reset(t, h)
	for _, path := range []string{"/opt/new", "/opt/x", "/opt/other/link"} {
		if exists(s, path) {
			t.Errorf("%s remains", path)
		}
	}
	if !exists(s, "/opt/other/other") || !exists(s, "/opt/before/content") {
		t.Error("what others wrote is missing")
	}
	if target, err := os.Readlink(s.Path("/etc/link")); err != nil || target != "old" {
		t.Errorf("the link of before: %q %v", target, err)
	}
	if info, err := os.Stat(s.Path("/opt/before")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the directory of before: %v %v", info, err)
	}
	if got := commands(t, s); !slices.Contains(got, "systemctl start --no-block timer.service") || slices.Contains(got, "systemctl start --no-block idle.service") {
		t.Error("the unit that ran before runs again")
	}
}
