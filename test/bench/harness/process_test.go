package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"
)

func TestSetVersions(t *testing.T) {
	var m Machine
	m.setVersions([]byte(`{"version":"v0.1.0","kubernetesVersion":"v1.36.3"}`))
	if m.Slipway != "v0.1.0" || m.Kubernetes != "v1.36.3" {
		t.Errorf("versions %q, %q", m.Slipway, m.Kubernetes)
	}
}

func TestSystemName(t *testing.T) {
	for text, want := range map[string]string{
		"NAME=Debian\nPRETTY_NAME=\"Debian GNU/Linux 13\"\n": "Debian GNU/Linux 13",
		"PRETTY_NAME='Alpine'\n":                             "Alpine",
		"NAME=x\n":                                           "Linux",
	} {
		if got := systemName(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestPace(t *testing.T) {
	if took := Pace(); took <= 0 {
		t.Errorf("pace %v", took)
	}
}

// stat is a line as the kernel writes it, with the fields that count and 0 for the others.
func stat(pid, name, parent, user, system, pages string) string {
	return pid + " (" + name + ") S " + parent + " 1 1 0 -1 4194560 9 0 0 0 " + user + " " + system +
		" 77 88 20 0 9 0 1234 2199023255552 " + pages + " 18446744073709551615" + strings.Repeat(" 1", 40) + "\n"
}

// proc writes a file system like /proc.
func proc(t *testing.T, files map[string]string) procfs.FS {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fs, err := procfs.NewFS(folder)
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

func TestProcessTree(t *testing.T) {
	fs := proc(t, map[string]string{
		"1/stat": stat("1", "init", "0", "0", "0", "1"), "10/stat": stat("10", "slipway", "1", "150", "50", "1000"),
		"12/stat": stat("12", "a) R 9 (b", "10", "0", "0", "1"), "30/stat": stat("30", "below", "12", "0", "0", "1"),
		"20/stat": stat("20", "other", "1", "0", "0", "1"), "99/status": "a process that has exited", "meminfo": "no process",
	})
	for root, want := range map[int][]int{10: {10, 12, 30}, 20: {20}, 5: nil} {
		tree := ProcessTree(fs, root)
		var got []int
		for _, p := range tree {
			got = append(got, p.PID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("tree of %d (-want +got):\n%s", root, diff)
		}
		if want := (Load{Memory: int64(1000 * os.Getpagesize()), CPU: 2 * time.Second}); root == 10 && LoadOf(tree[0]) != want {
			t.Errorf("load %+v, want %+v: user and system time in ticks of 10 ms, without children", LoadOf(tree[0]), want)
		}
	}
	if err := Try(func() { ProcessTree(proc(t, map[string]string{"7/stat": "7 (slipway) S"}), 7) }); err == nil {
		t.Error("no error for an incomplete line")
	}
}

func TestReadLoad(t *testing.T) {
	if l := ReadLoad(os.Getpid()); l.Memory == 0 || l.Files == 0 {
		t.Errorf("got %+v", l)
	}
	if err := Try(func() { ReadLoad(1 << 30) }); err == nil {
		t.Error("no error for a process that does not exist")
	}
}

func TestReadCPUTime(t *testing.T) {
	read := func(text string) CPUTime { return ReadCPUTime(proc(t, map[string]string{"stat": text})) }
	before := read("cpu  100 0 50 800 10 0 20 20 77 88\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	if diff := cmp.Diff(CPUTime{All: 10 * time.Second, Stolen: 200 * time.Millisecond}, before); diff != "" {
		t.Errorf("the time of guests (77, 88) is part of the first fields: %s", diff)
	}
	after := read("cpu  200 0 50 850 10 0 20 70 77 88\n")
	if got := after.StolenSince(before); got != 0.25 {
		t.Errorf("50 of 200 ticks were stolen, got %v", got)
	}
	if got := before.StolenSince(before); got != 0 {
		t.Errorf("got %v without time", got)
	}
	if err := Try(func() { ReadCPUTime(proc(t, nil)) }); err == nil {
		t.Error("no error without a file")
	}
}
