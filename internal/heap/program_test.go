package heap

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
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

// What was dropped is not the process's any more, and is there all the same at the next use. The file is one that nothing else maps:
// pages of the program come back while they are counted, and other tests drop them too.
func TestDrop(t *testing.T) {
	const size = 4 << 20
	file := filepath.Join(t.TempDir(), "a file")
	written := bytes.Repeat([]byte("program "), size/8)
	if err := os.WriteFile(file, written, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mapped, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mapped) }()
	if have := inMemory(t, file); have != size/1024 {
		t.Fatalf("%d kB of the file are in memory before, want all %d", have, size/1024)
	}
	drop(file)
	if have := inMemory(t, file); have != 0 {
		t.Errorf("%d kB of the file are in memory afterwards", have)
	}
	if !bytes.Equal(mapped, written) {
		t.Error("the file has another content")
	}
}

// A process that dropped its program goes on.
func TestDropProgram(t *testing.T) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if len(clean(bytes.NewReader(smaps(t)), exe)) == 0 {
		t.Errorf("nothing of %s can be dropped in\n%s", exe, smaps(t))
	}
	dropProgram()
}

var rss = regexp.MustCompile(`^Rss:\s+(\d+) kB$`)

// inMemory is what this process has of a file in memory, in kB.
func inMemory(t *testing.T, file string) int {
	t.Helper()
	sum, counts := 0, false
	for line := range strings.Lines(string(smaps(t))) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasSuffix(strings.Fields(line)[0], ":") {
			_, counts = parseMapping(line, file)
		}
		if found := rss.FindStringSubmatch(line); counts && found != nil {
			n, err := strconv.Atoi(found[1])
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

func smaps(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	return text
}
