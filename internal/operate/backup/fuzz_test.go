package backup

import (
	"bytes"
	"testing"
)

// FuzzRead: a file that is no archive, or was changed, is refused.
func FuzzRead(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := readArchive(bytes.NewReader(data), nil)
		if err == nil && len(a.Objects) != a.Info.Objects {
			t.Errorf("%d objects in the place of %d", len(a.Objects), a.Info.Objects)
		}
	})
}
