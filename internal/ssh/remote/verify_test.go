package remote_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/sshtest"
)

// TestKernelSettingsAreRestored covers settings of Slipway, and those that the kubelet changes when it starts.
func TestKernelSettingsAreRestored(t *testing.T) {
	s, h := sandbox(t, claim)
	before := map[string]string{"net/ipv4/ip_forward": "0\n", "vm/overcommit_memory": "0\n", "kernel/panic": "0\n", "fs/inotify/max_user_instances": "65536\n"}
	for file, value := range before {
		s.WriteFile("/proc/sys/"+file, value)
	}
	read := func(file string) string {
		t.Helper()
		text, err := os.ReadFile(s.Path("/proc/sys/" + file))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	record(t, h)
	b := sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": []byte("k"), "cni/bridge": []byte("c"), "images/control-plane.tar": []byte("i")})
	if err := h.InstallBundle(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.PrepareNode(t.Context(), b, remote.NodeSettings{}); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"net/ipv4/ip_forward": "1\n", "vm/overcommit_memory": "1\n", "kernel/panic": "10\n", "fs/inotify/max_user_instances": "65536\n"} {
		if got := read(file); got != want {
			t.Errorf("%s is %q on a node", file, got)
		}
	}
	reset(t, h)
	for file, want := range before {
		if got := read(file); got != want {
			t.Errorf("%s is %q after cleaning", file, got)
		}
	}
}

// TestContainerHasNoHardware covers hosts in containers, which show the product UUID of one machine.
func TestContainerHasNoHardware(t *testing.T) {
	s, h := sandbox(t, claim)
	s.WriteFile("/sys/class/dmi/id/product_uuid", "4c4c4544-0042-3510-8051-b8c04f4e4d32\n")
	facts := func() remote.Facts {
		t.Helper()
		f, err := h.Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if facts().ProductUUIDHash == "" {
		t.Error("a machine has a product UUID")
	}
	s.WriteFile("/container", "")
	if facts().ProductUUIDHash != "" {
		t.Error("a container has no product UUID of its own")
	}
}

func TestDisksOfHost(t *testing.T) {
	s, h := sandbox(t, claim)
	for name, size := range map[string]string{"nvme0n1": "2097152\n", "sda": "4096\n", "sr0": "2048\n", "loop0": "2048\n", "dm-0": "2048\n", "nvme0c0n1": "2097152\n"} {
		s.WriteFile("/sys/block/"+name+"/size", size)
	}
	s.WriteFile("/sys/block/nvme0c0n1/hidden", "1\n")
	f, err := h.Facts(t.Context())
	if diff := cmp.Diff([]remote.Disk{{Name: "nvme0n1", SizeMiB: 1024}, {Name: "sda", SizeMiB: 2}}, f.Disks); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// TestProgramsOfBundleVerify covers a host whose packet filters only the programs of the bundle can read.
func TestProgramsOfBundleVerify(t *testing.T) {
	s, h := sandbox(t, claim)
	s.WriteFile("/usr/local/sbin/iptables-save", "#!/bin/sh\nexec "+s.Path("/var/lib/slipway/current/bin/iptables-save")+"\n")
	record(t, h)
	b := sshtest.WriteBundle(t, map[string][]byte{
		"bin/iptables-save": []byte("#!/bin/sh\necho '*filter'\necho ':KUBE-X - [0:0]'\n"), "bin/kubelet": []byte("k"), "cni/bridge": []byte("c"), "images/control-plane.tar": []byte("i"),
	})
	if err := h.InstallBundle(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.PrepareNode(t.Context(), b, remote.NodeSettings{}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second attempt needs the programs, too
		left, err := h.Reset(t.Context())
		if diff := cmp.Diff([]remote.Leftover{{Kind: "iptables", Item: "filter KUBE-X"}}, left); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	}
}

// TestChecklist covers the record of a cleaning, which stays on the host until the next claim.
func TestChecklist(t *testing.T) {
	s, h := sandbox(t, claim)
	cleaning := func() *remote.CleaningRecord {
		t.Helper()
		f, err := h.Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return f.Cleaning
	}
	record(t, h)
	s.WriteFile("/var/lib/slipway/node/installed", s.Path("/etc/evil")+"\n")
	s.WriteFile("/var/lib/slipway/node/groups", "evil\n")
	s.WriteFile("/existing", "evil\n")
	left, err := h.Reset(t.Context())
	if diff := cmp.Diff([]remote.Leftover{{Kind: "group", Item: "evil"}}, left); diff != "" || err != nil || cleaning() != nil {
		t.Errorf("a host that is not clean has a checklist: %v %s", err, diff)
	}
	s.WriteFile("/existing", "")
	reset(t, h)
	got := cleaning()
	if err := h.DeleteRecord(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if again := cleaning(); got == nil || got.ClaimID != claim || !slices.Contains(got.Verified, "mounts") || !slices.Contains(got.Verified, "groups") || !cmp.Equal(got, again) {
		t.Errorf("%+v, and without a record %+v", got, again)
	}
	if err := h.RemoveBundles(t.Context()); err != nil || cleaning() == nil {
		t.Errorf("the checklist is deleted with the bundles: %v", err)
	}
	record(t, h)
	if cleaning() != nil {
		t.Error("the checklist of the last user remains while the host is used")
	}
}

// TestChangedForwarding covers a kernel setting that cannot be restored.
func TestChangedForwarding(t *testing.T) {
	s, h := sandbox(t, claim)
	s.WriteFile("/proc/sys/net/ipv4/ip_forward", "0\n")
	record(t, h)
	file := s.Path("/proc/sys/net/ipv4/ip_forward")
	if err := errors.Join(os.Remove(file), os.Symlink("/dev/null", file)); err != nil {
		t.Fatal(err)
	}
	left, err := h.Reset(t.Context())
	if diff := cmp.Diff([]remote.Leftover{{Kind: "setting", Item: "net.ipv4.ip_forward"}}, left); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// TestAddedProgram covers a program that a user of a node adds to a bundle, which scripts would run as root for later users.
func TestAddedProgram(t *testing.T) {
	for name, add := range map[string]func(*testing.T, *sshtest.Server, string){
		"program":           func(_ *testing.T, s *sshtest.Server, at string) { s.WriteFile(at+"/bin/ipvsadm", "#!/bin/sh\n") },
		"name of two lines": func(_ *testing.T, s *sshtest.Server, at string) { s.WriteFile(at+"/bin/a\nb", "") },
		"link": func(t *testing.T, s *sshtest.Server, at string) {
			if err := os.Symlink("/usr/bin", s.Path(at+"/sbin")); err != nil {
				t.Fatal(err)
			}
		},
		"nothing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			s, h := sandbox(t, claim)
			record(t, h)
			b := sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": []byte("k"), "cni/bridge": []byte("c")})
			if err := h.InstallBundle(t.Context(), b, nil); err != nil {
				t.Fatal(err)
			}
			at := "/var/lib/slipway/bundles/" + b.Digest
			if add != nil {
				add(t, s, at)
			}
			reset(t, h)
			if exists(s, at) != (add == nil) {
				t.Error("a bundle is deleted if it was changed, and only then")
			}
		})
	}
}

// TestLinkedBundle covers a directory of a bundle that a user of a node has replaced by a link to another directory of the host.
func TestLinkedBundle(t *testing.T) {
	s, h := sandbox(t, claim)
	record(t, h)
	b := sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": []byte("k"), "cni/bridge": []byte("c")})
	s.WriteFile("/opt/programs/other", "")
	s.WriteFile("/var/lib/slipway/bundles/"+b.Digest+"/cni/bridge", "c")
	if err := os.Symlink(s.Path("/opt/programs"), s.Path("/var/lib/slipway/bundles/"+b.Digest+"/bin")); err != nil {
		t.Fatal(err)
	}
	if err := h.InstallBundle(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	if exists(s, "/opt/programs/kubelet") || !exists(s, "/opt/programs/other") {
		t.Error("the bundle was written to another directory")
	}
}

// TestNamesOfBundles covers directories beside the bundles whose names would be several words for a shell.
func TestNamesOfBundles(t *testing.T) {
	s, h := sandbox(t, claim)
	record(t, h)
	for _, name := range []string{"a b", "c *", "-rf", strings.Repeat("A", 64)} {
		s.WriteFile("/var/lib/slipway/bundles/"+name+"/complete", "")
	}
	for range 3 {
		if err := h.InstallBundle(t.Context(), testBundle(t, 100), nil); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(s.Path("/var/lib/slipway/bundles"))
	if err != nil || len(entries) != 2 {
		t.Errorf("%d directories remain instead of two bundles: %v %v", len(entries), entries, err)
	}
}

// TestKilledRecord covers a script that was killed while it wrote the record.
func TestKilledRecord(t *testing.T) {
	s, h := sandbox(t, claim)
	s.WriteFile("/etc/slipway/.machine.json.4711", "{")
	record(t, h)
	entries, err := os.ReadDir(s.Path("/etc/slipway"))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
	line := slices.IndexFunc(commands(t, s), func(c string) bool {
		return strings.HasPrefix(c, "sync ") && strings.Contains(c, "/node/inventory ") && strings.Contains(c, "/.machine.json.")
	})
	if line < 0 {
		t.Errorf("the record is visible before it is on the disk: %q", commands(t, s))
	}
}
