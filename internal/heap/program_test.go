package heap

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Only what is still the file's own may be dropped: data that the process wrote would be lost.
func TestClean(t *testing.T) {
	const text = `00400000-00500000 r-xp 00000000 fe:00 12   /opt/my slipway
Rss:      100 kB
Private_Dirty:       100 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me sd
00500000-00600000 r--p 00100000 fe:00 12   /opt/my slipway
Private_Dirty:         0 kB
Anonymous:             0 kB
00600000-00610000 r--p 00200000 fe:00 12   /opt/my slipway
Private_Dirty:         4 kB
Anonymous:             4 kB
00610000-00620000 r--p 00210000 fe:00 12   /opt/my slipway
Anonymous:
00620000-00630000 rw-p 00220000 fe:00 12   /opt/my slipway
Anonymous:             0 kB
00630000-00640000 r--p 00220000 fe:00 13   /opt/another/opt/my slipway
Anonymous:             0 kB
00650000-00640000 r--p 00220000 fe:00 12   /opt/my slipway
7f0000000000-7f0000001000 r--p 00000000 00:00 0
7f0000002000-7f0000003000 r-xp 00000000 00:00 0   [vdso]
zz-yy r--p 00220000 fe:00 12   /opt/my slipway
`
	want := []mapping{{0x400000, 0x500000}, {0x500000, 0x600000}}
	got := clean(strings.NewReader(text), "/opt/my slipway")
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What was dropped is not the process's any more, and what it runs next is there all the same.
func TestDropProgram(t *testing.T) {
	before := fileMemory(t)
	dropProgram()
	if after := fileMemory(t); after >= before {
		t.Errorf("memory of files: %d kB before, %d kB after", before, after)
	}
}

var rssFile = regexp.MustCompile(`RssFile:\s+(\d+) kB`)

func fileMemory(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	found := rssFile.FindSubmatch(status)
	if found == nil {
		t.Fatalf("no RssFile in %s", status)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
