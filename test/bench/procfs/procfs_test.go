package procfs_test

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/test/bench/procfs"
)

// stat is a line as the kernel writes it, with the fields that count and 0 for the others.
func stat(pid, name, parent, user, system, pages string) string {
	return pid + " (" + name + ") S " + parent + " 1 1 0 -1 4194560 9 0 0 0 " + user + " " + system +
		" 77 88 20 0 9 0 1234 2199023255552 " + pages + " 18446744073709551615 1 1 0 0 0 0 0 0 0\n"
}

func TestParseStat(t *testing.T) {
	tests := map[string]struct {
		reason  string
		data    string
		want    procfs.Process
		wantErr bool
	}{
		"usual": {
			reason: "user and system time are added, in ticks of 10 ms; those of children (77, 88) are not",
			data:   stat("42", "slipway", "1", "150", "50", "1000"),
			want:   procfs.Process{PID: 42, Parent: 1, CPU: 2 * time.Second, Pages: 1000},
		},
		"name with spaces and parentheses": {
			reason: "the last parenthesis ends the name",
			data:   stat("7", "a) R 9 (b", "3", "1", "0", "2"),
			want:   procfs.Process{PID: 7, Parent: 3, CPU: 10 * time.Millisecond, Pages: 2},
		},
		"cut":        {reason: "a line that ends early is an error, not zeros", data: "42 (slipway) S 1 1", wantErr: true},
		"no name":    {reason: "not a stat file", data: "42 slipway S 1", wantErr: true},
		"no numbers": {reason: "a field that is no number is an error", data: stat("42", "x", "1", "one", "0", "2"), wantErr: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := procfs.ParseStat([]byte(tt.data))
			if (err != nil) != tt.wantErr {
				t.Fatalf("%s: error is %v", tt.reason, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestReadAndTree(t *testing.T) {
	proc := fstest.MapFS{
		"1/stat":    {Data: []byte(stat("1", "init", "0", "0", "0", "1"))},
		"10/stat":   {Data: []byte(stat("10", "slipway", "1", "0", "0", "1"))},
		"12/stat":   {Data: []byte(stat("12", "plane", "10", "0", "0", "1"))},
		"11/stat":   {Data: []byte(stat("11", "plane", "10", "0", "0", "1"))},
		"30/stat":   {Data: []byte(stat("30", "below", "11", "0", "0", "1"))},
		"20/stat":   {Data: []byte(stat("20", "other", "1", "0", "0", "1"))},
		"99/status": {Data: []byte("a process whose stat is gone already")},
		"meminfo":   {Data: []byte("no process")},
	}
	all, err := procfs.Read(proc)
	if err != nil {
		t.Fatal(err)
	}
	for root, want := range map[int][]int{10: {10, 11, 12, 30}, 20: {20}, 5: nil} {
		var got []int
		for _, p := range all.Tree(root) {
			got = append(got, p.PID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("tree of %d (-want +got):\n%s", root, diff)
		}
	}
}

func TestArguments(t *testing.T) {
	proc := fstest.MapFS{"10/cmdline": {Data: []byte("slipway\x00control-plane\x00run\x00")}}
	got, err := procfs.Arguments(proc, 10)
	if diff := cmp.Diff([]string{"slipway", "control-plane", "run"}, got); diff != "" || err != nil {
		t.Errorf("arguments: %v (-want +got):\n%s", err, diff)
	}
	if got, err := procfs.Arguments(proc, 11); got != nil || err != nil {
		t.Errorf("arguments of a process that is gone: %v, %v", got, err)
	}
}

func TestReadMemory(t *testing.T) {
	proc := fstest.MapFS{
		"10/status":       {Data: []byte("Name:\tslipway\nVmHWM:\t  900 kB\nVmRSS:\t  300 kB\nRssAnon:\t 200 kB\nRssFile:\t 100 kB\nThreads:\t9\n")},
		"10/smaps_rollup": {Data: []byte("55d0-7ffc ---p 00000000 00:00 0 [rollup]\nRss:  300 kB\nPss:  250 kB\nPss_Dirty: 1 kB\n")},
		"11/status":       {Data: []byte("Name:\tkthread\n")},
		"13/status":       {Data: []byte("VmRSS:\t  300 kB\nRssAnon:\t 200 kB\nRssFile:\t 100 kB\n")},
	}
	got, err := procfs.ReadMemory(proc, 10)
	if diff := cmp.Diff(procfs.Memory{Resident: 300 << 10, Anonymous: 200 << 10, File: 100 << 10, Share: 250 << 10}, got); diff != "" || err != nil {
		t.Errorf("memory: %v (-want +got):\n%s", err, diff)
	}
	for _, pid := range []int{11, 12, 13} {
		if _, err := procfs.ReadMemory(proc, pid); err == nil {
			t.Errorf("memory of process %d, which has none: no error", pid)
		}
	}
}

func TestReadHost(t *testing.T) {
	whole := func() fstest.MapFS {
		return fstest.MapFS{
			"meminfo":              {Data: []byte("MemTotal:       2048 kB\nMemFree:  1 kB\n")},
			"sys/kernel/osrelease": {Data: []byte("6.1.0\n")},
			"loadavg":              {Data: []byte("0.50 1.25 2.00 1/200 4711\n")},
		}
	}
	got, err := procfs.ReadHost(whole())
	want := procfs.Host{Memory: 2 << 20, Kernel: "6.1.0", Load: [3]float64{0.5, 1.25, 2}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("host: %v (-want +got):\n%s", err, diff)
	}
	for file := range whole() {
		proc := whole()
		delete(proc, file)
		if _, err := procfs.ReadHost(proc); err == nil {
			t.Errorf("without %s: no error", file)
		}
	}
}

func TestReadCPU(t *testing.T) {
	read := func(text string) (procfs.CPU, error) {
		return procfs.ReadCPU(fstest.MapFS{"stat": {Data: []byte(text)}})
	}
	before, err := read("cpu  100 0 50 800 10 0 20 20 77 88\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(procfs.CPU{All: 10 * time.Second, Stolen: 200 * time.Millisecond}, before); diff != "" {
		t.Errorf("ticks of 10 ms; those of guests (77, 88) are in the first already: %s", diff)
	}
	after, err := read("cpu  200 0 50 850 10 0 20 70 77 88\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := after.StolenSince(before); got != 0.25 {
		t.Errorf("50 of 200 ticks were stolen, got %v", got)
	}
	if got := before.StolenSince(before); got != 0 {
		t.Errorf("nothing of no time, got %v", got)
	}
	for _, text := range []string{"", "cpu 1 2 3\n", "cpu 1 2 3 4 5 6 x 8\n", "intr 1 2 3 4 5 6 7 8\n"} {
		if _, err := read(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	if _, err := procfs.ReadCPU(fstest.MapFS{}); err == nil {
		t.Error("no file: no error")
	}
}
