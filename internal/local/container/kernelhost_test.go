package container

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMissingCapabilities(t *testing.T) {
	cases := map[string]struct {
		reason, status string
		limit          int
		want           []string
		wantErr        bool
	}{
		"all":         {"nothing is missing", "CapBnd:\t000001ffffffffff\n", 41, nil, false},
		"no resource": {"as on hosts inside some virtual machines", "Name:\tx\nCapBnd:\t000001fffeffffff\n", 41, []string{"SYS_RESOURCE"}, false},
		"old kernel":  {"capabilities that the kernel does not know are not missing", "CapBnd:\t0000003fffffffff\n", 38, nil, false},
		"no line":     {"not a process status", "Name:\tx\n", 41, nil, true},
		"not hex":     {"not a number", "CapBnd:\tzz\n", 41, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := missingCapabilities(tc.status, tc.limit)
			if (err != nil) != tc.wantErr {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if n := len(capabilities()); n != 41 {
		t.Errorf("Linux 6 has 41 capabilities, got %d", n)
	}
}

func TestRaiseLimits(t *testing.T) {
	proc := t.TempDir()
	set := func(name, value string) string {
		path := filepath.Join(proc, "sys/fs/inotify", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	instances, watches := set("max_user_instances", "128\n"), set("max_user_watches", "1000000\n")
	if notes := (KernelHost{Proc: proc}).RaiseLimits(); len(notes) != 0 {
		t.Errorf("nothing to complain about, got %q", notes)
	}
	for path, want := range map[string]string{instances: "8192", watches: "1000000\n"} {
		if got, _ := os.ReadFile(path); string(got) != want {
			t.Errorf("%s: got %q, want %q (raised where too low, never lowered)", filepath.Base(path), got, want)
		}
	}
	// A file that not even root can write to stands for a host that refuses.
	refusing := KernelHost{Proc: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(refusing.Proc, "sys/fs/inotify"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/sys/kernel/cap_last_cap", filepath.Join(refusing.Proc, "sys/fs/inotify/max_user_instances")); err != nil {
		t.Fatal(err)
	}
	if notes := refusing.RaiseLimits(); len(notes) != 1 || !strings.Contains(notes[0], "sysctl -w fs.inotify.max_user_instances=8192") {
		t.Errorf("the note says what to run, got %q", notes)
	}
}

func TestNameServers(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own := file("own", "# comment\nsearch example.com\nnameserver 192.0.2.53\nnameserver 192.0.2.54 # second\nnameserver 192.0.2.53\nnameserver 2001:db8::53\nnameserver\n")
	loopback := file("loopback", "nameserver 127.0.0.53\nnameserver ::1\n; nameserver 192.0.2.1\n")
	for name, tc := range map[string]struct {
		reason string
		files  []string
		want   string
	}{
		"named":    {"each once, and by IPv4, which is what the network has", []string{own, loopback}, "[192.0.2.53 192.0.2.54]"},
		"resolved": {"what answers on loopback is not reached by a container", []string{loopback, own}, "[192.0.2.53 192.0.2.54]"},
		"none":     {"Pods resolve no names outside then", []string{loopback, filepath.Join(dir, "absent")}, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := KernelHost{Resolvers: tc.files}.NameServers(true, nil)
			if err != nil || fmt.Sprint(got) != tc.want {
				t.Errorf("%s: got %v, %v", tc.reason, got, err)
			}
		})
	}
	if _, err := (KernelHost{Resolvers: []string{dir}}).NameServers(true, nil); err == nil {
		t.Error("a file that cannot be read is an error")
	}
	told := []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	if got, err := (KernelHost{Resolvers: []string{own}}).NameServers(true, told); err != nil || fmt.Sprint(got) != "[192.0.2.1]" {
		t.Errorf("the operator's come first: got %v, %v", got, err)
	}
	if got, err := (KernelHost{Resolvers: []string{own}}).NameServers(false, told); err != nil || len(got) != 0 {
		t.Errorf("an internal network reaches none: got %v, %v", got, err)
	}
}

func TestMemory(t *testing.T) {
	proc := t.TempDir()
	h := KernelHost{Proc: proc}
	if available, total := h.MemoryMiB(); available != 0 || total != 0 {
		t.Errorf("without a file: %d of %d MiB", available, total)
	}
	text := "MemTotal:       24732432 kB\nMemFree:  abc kB\nMemAvailable:    2097152 kB\n\nHugePages_Total:       0\n"
	if err := os.WriteFile(filepath.Join(proc, "meminfo"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if available, total := h.MemoryMiB(); available != 2048 || total != 24152 {
		t.Errorf("got %d of %d MiB", available, total)
	}
}
