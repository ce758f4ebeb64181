package childproc

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestOpenTurnsALargeFileOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log", "x.log")
	write := func(text string) {
		t.Helper()
		f, err := OpenLog(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write("one\n")
	write("two\n")
	if data, err := os.ReadFile(path); err != nil || string(data) != "one\ntwo\n" {
		t.Fatalf("appended: %q, %v", data, err)
	}
	if err := os.Truncate(path, maxSize+1); err != nil {
		t.Fatal(err)
	}
	write("three\n")
	if data, err := os.ReadFile(path); err != nil || string(data) != "three\n" {
		t.Errorf("turned over: %q, %v", data, err)
	}
	if info, err := os.Stat(path + ".1"); err != nil || info.Size() != maxSize+1 {
		t.Errorf("the older file: %v, %v", info, err)
	}
}

// The last words of a process fit in its log also when its disk is full: their space is allocated before, where the file system can.
func TestOpenReservesSpace(t *testing.T) {
	able, err := os.Create(filepath.Join(t.TempDir(), "able"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = able.Close() }()
	want := int64(256 << 10)
	if err := unix.Fallocate(int(able.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, want); err != nil {
		want = 0
	}
	f, err := OpenLog(filepath.Join(filepath.Dir(able.Name()), "log", "x.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || info.Size() != 0 || info.Sys().(*syscall.Stat_t).Blocks*512 < want {
		t.Errorf("size %d, %d blocks, %v", info.Size(), info.Sys().(*syscall.Stat_t).Blocks, err)
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	if lines, err := TailLog(path, 3); err != nil || lines != nil {
		t.Errorf("a missing file: %q, %v", lines, err)
	}
	content := strings.Repeat(strings.Repeat("x", 99)+"\n", 2000) + "a\nb\r\nc"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	lines, err := TailLog(path, 3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, lines); diff != "" {
		t.Error(diff)
	}
}
