package remote

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// goodHost is the output of the preflight script on a host without problems.
const goodHost = `SYSTEMD=true
CGROUP=2
CONTROLLERS=cpuset cpu io memory hugetlb pids
OVERLAY=true
VXLAN=true
SETTING=net.ipv4.ip_forward 0
SETTING=net.bridge.bridge-nf-call-iptables 0
SETTING=fs.inotify.max_user_instances 128
SETTING=fs.inotify.max_user_watches 8192
SETTING=vm.overcommit_memory 0
SETTING=kernel.panic 0
SWAP=0
PORT=0016
DISK_FREE_KIB=20971520
RUN_FREE_KIB=102400
MEMORY_KIB=4194304
CPUS=2
NOW=1800000000
ARCHITECTURE=x86_64
HOSTNAME=h1
MACHINE_ID=0123456789abcdef0123456789abcdef
PRODUCT_UUID=
SELINUX=
CHCON=true
VAR_OPTIONS=rw,relatime
`

// programs are those of a host that was installed with an image for nodes. settingsOfDefault is a part of goodHost, and
// settingsOfImage has the values of such an image.
const (
	programs          = "PROGRAM=kubelet\nPROGRAM=kubeadm\nPROGRAM=containerd\n"
	settingsOfDefault = `SETTING=net.ipv4.ip_forward 0
SETTING=net.bridge.bridge-nf-call-iptables 0
SETTING=fs.inotify.max_user_instances 128
SETTING=fs.inotify.max_user_watches 8192
`
	settingsOfImage = `SETTING=net.ipv4.ip_forward 1
SETTING=net.bridge.bridge-nf-call-iptables 1
SETTING=fs.inotify.max_user_instances 8192
SETTING=fs.inotify.max_user_watches 524288
`
)

func TestFindings(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	id := identityHash("machine-id", "0123456789abcdef0123456789abcdef")
	managed := PreflightOptions{ManagedBundle: true, BundleBytes: 1 << 30}
	controlPlane := PreflightOptions{ManagedBundle: true, ControlPlane: true}
	cases := map[string]struct {
		reason  string
		change  [2]string
		options PreflightOptions
		want    []string // check names, with "!" for fatal ones
	}{
		"good":               {"nothing is wrong", [2]string{}, managed, nil},
		"cgroup v1":          {"handled, and reported", [2]string{"CGROUP=2", "CGROUP=1"}, managed, []string{"ControlGroups"}},
		"no memory control":  {"a Raspberry Pi", [2]string{"io memory hugetlb", "io"}, managed, []string{"!ControlGroups"}},
		"no systemd":         {"another init", [2]string{"SYSTEMD=true", "X="}, managed, []string{"!Systemd"}},
		"no overlay":         {"after a kernel update", [2]string{"OVERLAY=true", "X="}, managed, []string{"!KernelModules"}},
		"no vxlan":           {"other networks work", [2]string{"VXLAN=true", "X="}, managed, []string{"KernelModules"}},
		"read-only settings": {"forwarding cannot be turned on", [2]string{"SETTING=net.ipv4.ip_forward 0", "SETTING=net.ipv4.ip_forward 0\nFIXED=net.ipv4.ip_forward"}, managed, []string{"!KernelSettings"}},
		"fixed bridge":       {"Slipway cannot set it", [2]string{"VXLAN=true", "VXLAN=true\nFIXED=net.bridge.bridge-nf-call-iptables"}, managed, []string{"KernelSettings"}},
		"fixed inotify":      {"Slipway cannot raise the limits", [2]string{"VXLAN=true", "VXLAN=true\nFIXED=fs.inotify.max_user_watches\nFIXED=fs.inotify.max_user_instances"}, managed, []string{"KernelSettings", "KernelSettings"}},
		"fixed for kubelet":  {"the kubelet cannot set it", [2]string{"VXLAN=true", "VXLAN=true\nFIXED=kernel.panic"}, managed, []string{"!KernelSettings"}},
		"protected, managed": {"Slipway sets the values", [2]string{"VXLAN=true", "VXLAN=true\nPROTECTED=true"}, managed, nil},
		"protected":          {"the kubelet changes nothing, and does not start", [2]string{"SELINUX=", programs + "PROTECTED=true"}, PreflightOptions{}, []string{"!KernelSettings", "!KernelSettings", "KernelSettings", "KernelSettings", "KernelSettings", "KernelSettings"}},
		"installed, set":     {"an image for nodes", [2]string{settingsOfDefault, settingsOfImage + programs}, PreflightOptions{}, nil},
		"without images":     {"what needs the images of the bundle would wait for a pull", [2]string{settingsOfDefault, settingsOfImage + programs + "NO_IMAGES=true\n"}, PreflightOptions{}, []string{"Images"}},
		"images come later":  {"the bundle has them", [2]string{"SELINUX=", "NO_IMAGES=true"}, managed, nil},
		"AppArmor":           {"profiles can be loaded", [2]string{"SELINUX=", "APPARMOR=Y\nAPPARMOR_PARSER=true"}, managed, nil},
		"no AppArmor parser": {"profiles cannot be loaded", [2]string{"SELINUX=", "APPARMOR=Y"}, managed, []string{"AppArmor"}},
		"AppArmor is off":    {"nothing needs the parser", [2]string{"SELINUX=", "APPARMOR=N"}, managed, nil},
		"same product UUID":  {"a cloned machine", [2]string{"PRODUCT_UUID=", "PRODUCT_UUID=4C4C4544-0042-3510-8051-B8C04F4E4D32"}, PreflightOptions{ManagedBundle: true, ProductUUIDs: map[string]string{identityHash("product-uuid", "4c4c4544-0042-3510-8051-b8c04f4e4d32"): "other"}}, []string{"!ProductUUID"}},
		"no product UUID":    {"a container", [2]string{}, PreflightOptions{ManagedBundle: true, ProductUUIDs: map[string]string{"": "other"}}, nil},
		"swap":               {"handled, and reported", [2]string{"SWAP=0", "SWAP=1"}, managed, []string{"Swap"}},
		"kubelet port":       {"something listens", [2]string{"PORT=0016", "PORT=280A"}, managed, []string{"!Ports"}},
		"API port":           {"a worker does not need it", [2]string{"PORT=0016", "PORT=192B"}, managed, nil},
		"API port in use":    {"a control plane needs it", [2]string{"PORT=0016", "PORT=192B"}, controlPlane, []string{"!Ports"}},
		"disk":               {"a bundle of 1 GiB needs three times as much", [2]string{"DISK_FREE_KIB=20971520", "DISK_FREE_KIB=4194304"}, managed, []string{"!Disk"}},
		"memory":             {"too little", [2]string{"MEMORY_KIB=4194304", "MEMORY_KIB=524288"}, managed, []string{"!Memory"}},
		"control plane":      {"needs more", [2]string{"MEMORY_KIB=4194304", "MEMORY_KIB=1048576"}, controlPlane, []string{"!Memory"}},
		"clock":              {"ten minutes ahead", [2]string{"NOW=1800000000", "NOW=1800000600"}, managed, []string{"!Clock"}},
		"architecture":       {"the bundle is for another", [2]string{"ARCHITECTURE=x86_64", "ARCHITECTURE=aarch64"}, PreflightOptions{ManagedBundle: true, Architecture: "amd64"}, []string{"!Architecture"}},
		"no programs":        {"nothing is installed", [2]string{settingsOfDefault, settingsOfImage}, PreflightOptions{}, []string{"!Programs", "!Programs", "!Programs"}},
		"hostname":           {"cannot be a node's name", [2]string{"HOSTNAME=h1", "HOSTNAME=localhost"}, managed, []string{"!Hostname"}},
		"upper case":         {"cannot be a node's name", [2]string{"HOSTNAME=h1", "HOSTNAME=H1"}, managed, []string{"!Hostname"}},
		"same hostname":      {"of another host", [2]string{}, PreflightOptions{ManagedBundle: true, Hostnames: map[string]string{"h1": "other"}}, []string{"!Hostname"}},
		"same machine ID":    {"a cloned machine", [2]string{}, PreflightOptions{ManagedBundle: true, MachineIDs: map[string]string{id: "other"}}, []string{"!MachineID"}},
		"no machine ID":      {"an image that was never booted", [2]string{"MACHINE_ID=0123456789abcdef0123456789abcdef", "MACHINE_ID="}, managed, []string{"!MachineID"}},
		"SELinux":            {"programs are labelled", [2]string{"SELINUX=", "SELINUX=1"}, managed, []string{"SELinux"}},
		"SELinux, no chcon":  {"programs cannot be labelled", [2]string{"SELINUX=\nCHCON=true", "SELINUX=1"}, managed, []string{"!SELinux"}},
		"firewall":           {"may block", [2]string{"SELINUX=", "FIREWALL=ufw"}, managed, []string{"Firewall"}},
		"noexec":             {"programs would not start", [2]string{"rw,relatime", "rw,noexec"}, managed, []string{"!FileSystem"}},
		"read-only":          {"a directory", [2]string{"SELINUX=", "READ_ONLY=/etc\nREAD_ONLY=/etc"}, managed, []string{"!FileSystem"}},
		"tools":              {"are missing", [2]string{"SELINUX=", "MISSING=tar\nMISSING=awk"}, managed, []string{"!Tools"}},
		"kubelet":            {"of another cluster", [2]string{"SELINUX=", "KUBELET=true"}, managed, []string{"!Kubelet"}},
		"containerd":         {"of another program", [2]string{"SELINUX=", "SOCKET=/run/containerd/containerd.sock"}, managed, []string{"!ContainerRuntime"}},
		"Docker":             {"may stay", [2]string{"SELINUX=", "SOCKET=/run/docker.sock"}, managed, []string{"ContainerRuntime"}},
		"foreign file":       {"would be overwritten", [2]string{"SELINUX=", "FOREIGN=/usr/bin/kubelet"}, managed, []string{"!Installation"}},
		"installed programs": {"are used", [2]string{"SELINUX=", programs}, PreflightOptions{}, []string{"KernelSettings", "KernelSettings", "KernelSettings", "KernelSettings"}},
		"other images":       {"would be used", [2]string{"SELINUX=", "CONTENT=/var/lib/containerd"}, managed, []string{"!Content"}},
		"own images":         {"of the installed containerd", [2]string{"SELINUX=", "CONTENT=/var/lib/containerd\n" + programs}, PreflightOptions{}, []string{"KernelSettings", "KernelSettings", "KernelSettings", "KernelSettings"}},
		"record deleted":     {"the node was not cleaned", [2]string{"SELINUX=", "UNRECORDED=true"}, managed, []string{"!FormerNode"}},
		"full /etc":          {"the claim cannot be recorded", [2]string{"SELINUX=", "ETC_FREE_KIB=12"}, managed, []string{"!Disk"}},
		"no output":          {"a host that returns nothing", [2]string{goodHost, ""}, PreflightOptions{}, []string{"!ControlGroups", "!Disk", "!Disk", "!Hostname", "!KernelModules", "!KernelSettings", "!MachineID", "!Memory", "!Programs", "!Programs", "!Programs", "!Systemd", "KernelModules"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := goodHost
			if tc.change[0] != "" {
				text = strings.Replace(text, tc.change[0], tc.change[1], 1)
				if text == goodHost {
					t.Fatal("nothing was changed")
				}
			}
			var got []string
			for _, f := range findings(observe(text, at, at.Add(time.Millisecond)), tc.options) {
				mark := ""
				if f.Fatal {
					mark = "!"
				}
				got = append(got, mark+f.Check)
				if f.Problem == "" || f.Remedy == "" {
					t.Errorf("%s has no problem or no remedy", f.Check)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// TestDiskOfUsedHosts checks that a host needs no space for what is on it.
func TestDiskOfUsedHosts(t *testing.T) {
	const size = 500 << 20
	at, digest, other := time.Unix(1_800_000_000, 0), strings.Repeat("a", 64), strings.Repeat("b", 64)
	cases := map[string]struct {
		reason, text string
		want         int64 // MiB
	}{
		"new":            {"the bundle, its images and archives", "", 2048 + 1500},
		"other bundle":   {"it is of no use", "STORED=" + other + " 512000\nPRELOADED=" + other + "\nIMPORTED=" + other, 2048 + 1500},
		"upload was cut": {"the upload continues", "STORED=" + digest + " 204800", 2048 + 1300},
		"second use":     {"the bundle is kept", "STORED=" + digest + " 512000\nPRELOADED=" + digest, 2048 + 500},
		"prepared":       {"nothing more is needed", "STORED=" + digest + " 512000\nPRELOADED=" + digest + "\nIMPORTED=" + digest, 0},
		"hostile":        {"a number that no host has", "STORED=" + digest + " 99999999999999999\nSTORED=" + digest + " -5", 2048 + 1000},
	}
	for name, tc := range cases {
		got := observe(goodHost+tc.text+"\n", at, at).diskNeeded(PreflightOptions{ManagedBundle: true, BundleBytes: size, BundleDigest: digest})
		if got != tc.want {
			t.Errorf("%s: %d instead of %d MiB: %s", name, got, tc.want, tc.reason)
		}
	}
	if got := observe(goodHost, at, at).diskNeeded(PreflightOptions{ManagedBundle: true}); got != 2048 {
		t.Errorf("without a bundle: %d MiB", got)
	}
}

// TestMessagesAreStable checks that small changes of a host do not change messages.
func TestMessagesAreStable(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	text := func(change ...string) string {
		var out strings.Builder
		for _, f := range findings(observe(strings.NewReplacer(change...).Replace(goodHost), at, at), PreflightOptions{ManagedBundle: true, BundleBytes: 1 << 30}) {
			out.WriteString(f.String() + "\n")
		}
		return out.String()
	}
	a := text("DISK_FREE_KIB=20971520", "DISK_FREE_KIB=1400000", "MEMORY_KIB=4194304", "MEMORY_KIB=540000", "NOW=1800000000", "NOW=1800000100")
	b := text("DISK_FREE_KIB=20971520", "DISK_FREE_KIB=1410000", "MEMORY_KIB=4194304", "MEMORY_KIB=541500", "NOW=1800000000", "NOW=1800000102")
	if a != b || strings.Count(a, "\n") != 3 {
		t.Errorf("%s%s", a, b)
	}
}
