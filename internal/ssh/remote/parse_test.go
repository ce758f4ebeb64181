package remote

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseFacts(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	digest := strings.Repeat("ab", 32)
	cases := map[string]struct {
		reason, text string
		want         Facts
	}{
		"Debian": {
			"what a host prints",
			"NOW=1800000000\nOS=Debian GNU/Linux 12 (bookworm)\nARCHITECTURE=x86_64\nKERNEL=6.1.0-18-amd64\nHOSTNAME=h1\nCPUS=2\nMEMORY_KIB=2097152\nDISK_KIB=10485760\n" +
				"DISK_FREE_KIB=5242880\nCGROUP=2\nBOOT_ID=b\nMACHINE_ID=\nPRODUCT_UUID=\nRUNTIME=docker\nKUBELET=false\nRECORD=true\nBUNDLE=" + digest + "\nBUNDLE=../x\n" +
				"DISK=sdb 4194304\nDISK=nvme0n1 2048\nSELINUX=\nAPPARMOR=Y\n",
			Facts{OSImage: "Debian GNU/Linux 12 (bookworm)", Architecture: "amd64", Kernel: "6.1.0-18-amd64", Hostname: "h1", CPUs: 2, MemoryMiB: 2048, DiskMiB: 10240,
				DiskFreeMiB: 5120, ContainerRuntime: "docker", CgroupVersion: 2, BootID: "b", HasRecord: true, Bundles: []string{digest},
				Disks: []Disk{{"nvme0n1", 1}, {"sdb", 2048}}, SecurityModule: "AppArmor"},
		},
		"Raspberry": {"another architecture, and a clock that is behind", "NOW=1799999000\nARCHITECTURE=aarch64\n", Facts{Architecture: "arm64", ClockOffset: -1000 * time.Second}},
		"hostile": {
			"text becomes short and printable, numbers are numbers",
			"OS=\x1b[2J" + strings.Repeat("x", 9000) + "\nCPUS=-5\nMEMORY_KIB=99999999999999999999\nCGROUP=77\nNOW=9999999999999\nno line\n=\n",
			Facts{OSImage: fact("\x1b[2J" + strings.Repeat("x", 9000)), CgroupVersion: 2},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, parseFacts(tc.text, at, at.Add(time.Millisecond))); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
	if got := fact("\x1b[2J" + strings.Repeat("x", 9000)); strings.Contains(got, "\x1b") || len(got) > maxFact+8 {
		t.Errorf("a fact must be short and printable: %d bytes", len(got))
	}
}

func TestCleaningRecord(t *testing.T) {
	const claim = "abcdefghijklmnopqrstuvwxyz"
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	text := func(claim, at, verified string) string {
		return `{"claimID": "` + claim + `", "cleanedAt": "` + at + `", "verified": [` + verified + `]}`
	}
	cases := map[string]struct {
		reason, text string
		want         *CleaningRecord
	}{
		"record":      {"what the script writes", text(claim, "2026-01-02T03:04:05Z", `"mounts", "files"`), &CleaningRecord{claim, at, []string{"mounts", "files"}}},
		"unrecorded":  {"the node of another installer", text("unrecorded", "2026-01-02T03:04:05Z", `"mounts"`), &CleaningRecord{"unrecorded", at, []string{"mounts"}}},
		"zone":        {"the status has UTC", text(claim, "2026-01-02T05:04:05.5+02:00", ""), &CleaningRecord{claim, at, []string{}}},
		"claim":       {"the claim has the form of one", text("x", "2026-01-02T03:04:05Z", ""), nil},
		"year":        {"the API has years of four digits", text(claim, "0000-01-02T03:04:05Z", ""), nil},
		"not JSON":    {"something else", "hello", nil},
		"empty":       {"there is none", "", nil},
		"escape code": {"items become printable", text(claim, "2026-01-02T03:04:05Z", `"a\u001b[2J"`), &CleaningRecord{claim, at, []string{`a\x1b[2J`}}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, cleaningRecord(tc.text)); diff != "" {
			t.Errorf("%s: %s: %s", name, tc.reason, diff)
		}
	}
	if r := cleaningRecord(text(claim, "2026-01-02T03:04:05Z", strings.Repeat(`"a",`, 99)+`"a"`)); len(r.Verified) != maxVerified {
		t.Errorf("%d items", len(r.Verified))
	}
}

func TestDisks(t *testing.T) {
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("sd%02d 2048", i))
	}
	cases := map[string]struct {
		reason string
		lines  []string
		want   []Disk
	}{
		"sorted":     {"the status does not change with the order", []string{"vdb 2048", "vda 4096"}, []Disk{{"vda", 2}, {"vdb", 1}}},
		"card slot":  {"without a card, it has no size", []string{"sda 0"}, nil},
		"twice":      {"a name is the key of the list", []string{"sda 2048", "sda 4096"}, []Disk{{"sda", 1}}},
		"no name":    {"names are short and printable", []string{" 2048", "\x1b[2J 2048", strings.Repeat("x", 33) + " 2048", "a b 2048"}, nil},
		"no number":  {"sizes are numbers", []string{"sda x", "sdb -2048", "sdc"}, nil},
		"controller": {"the name has a special character", []string{"cciss!c0d0 2048"}, []Disk{{"cciss!c0d0", 1}}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, disks(tc.lines)); diff != "" {
			t.Errorf("%s: %s: %s", name, tc.reason, diff)
		}
	}
	if n := len(disks(many)); n != maxDisks {
		t.Errorf("%d disks", n)
	}
}

func TestIdentityHash(t *testing.T) {
	a, b := identityHash("machine-id", "ABC\n"), identityHash("machine-id", "abc")
	if a != b || len(a) != 16 || a == identityHash("product-uuid", "abc") || identityHash("machine-id", " \n") != "" {
		t.Errorf("hashes of IDs: %q and %q", a, b)
	}
	for _, id := range []string{"uninitialized", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "03000200-0400-0500-0006-000700080009"} {
		if hash := identityHash("product-uuid", id); hash != "" {
			t.Errorf("%s identifies no machine: %s", id, hash)
		}
	}
}

func TestClockOffset(t *testing.T) {
	at := time.Unix(1000, 400e6)
	for read, want := range map[int64]time.Duration{1000: 0, 1001: 0, 1010: 8 * time.Second, 990: -10 * time.Second, 0: 0} {
		if got := clockOffset(read, at, at.Add(time.Second)); got != want {
			t.Errorf("a clock that shows %d: %v instead of %v", read, got, want)
		}
	}
}

func TestParseRecord(t *testing.T) {
	const claim = "abcdefghijklmnopqrstuvwxyz"
	cases := map[string]struct {
		reason, text string
		want         *Record
	}{
		"record":      {"what is written can be read", string(must(recordText(Record{ClaimID: claim, Namespace: "n", Name: "m"}))), &Record{ClaimID: claim, Namespace: "n", Name: "m"}},
		"claim":       {"the claim must have the form of one", `{"claimID":"../../etc"}`, nil},
		"not JSON":    {"the file of another program", "hello", nil},
		"empty":       {"an interrupted write", "", nil},
		"too large":   {"a record is small", `{"claimID":"` + claim + `","name":"` + strings.Repeat("x", maxRecord) + `"}`, nil},
		"escape code": {"names become printable", `{"claimID":"` + claim + `","name":"a\u001b[2J"}`, &Record{ClaimID: claim, Name: `a\x1b[2J`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseRecord([]byte(tc.text))
			if diff := cmp.Diff(tc.want, got); diff != "" || (err == nil) != (tc.want != nil) {
				t.Errorf("%s: %v %s", tc.reason, err, diff)
			}
		})
	}
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

func TestParseProgress(t *testing.T) {
	cases := map[string]struct {
		reason, text string
		want         Progress
		fails        bool
	}{
		"none":       {"nothing started", "STATE=None\n\n", Progress{State: BootstrapNone}, false},
		"running":    {"a command runs", "STATE=Running\nSTAGE=step runcmd 3 kubeadm\n\nSTATE=Done\nlog\n", Progress{State: BootstrapRunning, Stage: "step runcmd 3 kubeadm", Log: []byte("STATE=Done\nlog\n")}, false},
		"timeout":    {"the time is over", "STATE=Failed\nEXIT=124\nFAILURE=timeout\n\n", Progress{State: BootstrapFailed, ExitCode: 124, Failure: "timeout"}, false},
		"unknown":    {"a state that does not exist", "STATE=Great\n\n", Progress{}, true},
		"no state":   {"an empty output", "", Progress{}, true},
		"odd reason": {"a reason that does not exist", "STATE=Failed\nFAILURE=\x1b[2J\n\n", Progress{}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseProgress([]byte(tc.text))
			if (err != nil) != tc.fails {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if len(got.Log) == 0 {
				got.Log = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

func TestResumeOffset(t *testing.T) {
	cases := map[string]struct {
		reason     string
		have, size int64
		want       int64
	}{
		"nothing":   {"begin", 0, 100, 0},
		"one piece": {"the only piece may have holes", 100, chunk, 0},
		"border":    {"the last piece may have holes although it has its full length", 2 * chunk, 5 * chunk, chunk},
		"middle":    {"the last piece is sent again", 2*chunk + 5, 5 * chunk, 2 * chunk},
		"too large": {"another file", 200, 100, 0},
	}
	for name, tc := range cases {
		if got := resumeOffset(tc.have, tc.size); got != tc.want {
			t.Errorf("%s: %d instead of %d: %s", name, got, tc.want, tc.reason)
		}
	}
}

func TestLeftovers(t *testing.T) {
	want := []Leftover{{"mount", "/var/lib/kubelet/a b"}, {"process", "etcd"}}
	if diff := cmp.Diff(want, leftovers([]string{"mount /var/lib/kubelet/a b", "process etcd"})); diff != "" {
		t.Error(diff)
	}
	if n := len(leftovers(make([]string, 1000))); n != maxLeftovers {
		t.Errorf("%d leftovers", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("STATE=Running\n\nlog")
	f.Add("OS=x\nNOW=1\nPORT=0016\nBUNDLE=x")
	f.Fuzz(func(t *testing.T, text string) {
		now := time.Unix(1_800_000_000, 0)
		facts := parseFacts(text, now, now)
		if facts.CPUs < 0 || facts.MemoryMiB < 0 || len(facts.Bundles) > maxBundles || len(facts.Disks) > maxDisks {
			t.Errorf("%+v", facts)
		}
		if p, err := parseProgress([]byte(text)); err == nil && len(p.Log) > maxBootstrapLog {
			t.Error("the log is too large")
		}
		_, _ = parseRecord([]byte(text))
		findings(observe(text, now, now), PreflightOptions{ManagedBundle: true, ControlPlane: true})
		_, _ = cloudConfigOf([]byte(text))
	})
}

func TestValuesAreLimited(t *testing.T) {
	v := values(strings.Repeat("A=1\nB=2\n", 100_000)+"C="+strings.Repeat("x", maxValue+1)+"\n", "A", "C")
	if len(v["A"]) != maxValues || len(v) != 2 || len(v["C"][0]) != maxValue {
		t.Errorf("%d values of A, %d names", len(v["A"]), len(v))
	}
}
