package versions

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// FuzzImport: whatever is in the place of an archive, nothing of it is left unless it is a whole release.
func FuzzImport(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("\x1f\x8b"))
	f.Add(archive(f, manifestFile, `{"format":1,"kubernetesVersion":"v1.35.4"}`, programFile, "#!"))
	f.Add(archive(f, "../"+manifestFile, `{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		s := LocalStore(dir)
		s.Dir, s.Now = filepath.Join(dir, "kubernetes"), time.Now
		_, added, err := s.Import(bytes.NewReader(data), "")
		all, listErr := s.List()
		if listErr != nil {
			t.Fatal(listErr)
		}
		versions := slices.DeleteFunc(all, func(r Release) bool { return r.Included })
		if added != (err == nil && len(versions) == 1) || err != nil && len(versions) != 0 {
			t.Errorf("added %v, %v, and there is %v", added, err, versions)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 1 {
			t.Errorf("something was written beside the folder: %v, %v", entries, err)
		}
	})
}
