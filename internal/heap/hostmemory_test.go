package heap

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCgroupLimit(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/own", "0::/a/b\n")
	write(t, dir+"/root/a/memory.max", "1000\n")
	write(t, dir+"/root/a/b/memory.max", "max\n")
	if got := cgroupLimit(dir+"/own", dir+"/root", 5000); got != 1000 {
		t.Errorf("%d, want that of the group above", got)
	}
	if got := cgroupLimit(dir+"/none", dir+"/root", 5000); got != 5000 {
		t.Errorf("%d without control groups", got)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
