package datadir

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A disk is low before it is full, and a directory that does not exist yet has the space of the folder that it will be in.
func TestSpace(t *testing.T) {
	const mib = 1 << 20
	tests := map[string]struct {
		free      uint64 // MiB
		full, low bool
		text      string
	}{
		"full":  {0, true, true, "0 of 260 MiB free"},
		"low":   {120, false, true, "120 of 260 MiB free"},
		"roomy": {240, false, false, "240 of 260 MiB free"},
	}
	for name, test := range tests {
		s, err := spaceOf("/data/slipway", func(path string, st *unix.Statfs_t) error {
			if path != "/data" {
				return unix.ENOENT
			}
			*st = unix.Statfs_t{Bsize: mib, Blocks: 260, Bfree: test.free, Bavail: test.free}
			return nil
		})
		if err != nil || s.IsFull() != test.full || s.IsLow() != test.low || s.String() != test.text {
			t.Errorf("%s: %s, full %t, low %t, %v", name, s, s.IsFull(), s.IsLow(), err)
		}
	}
	want := "the disk of /data is full (0 of 260 MiB free): free some space, then slipway up -d"
	if got := DiskFullFault("/data", Space{Total: 260 * mib}, "slipway up -d").Message; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if s, err := SpaceOf(Dir(t.TempDir())); err != nil || s.Total == 0 {
		t.Errorf("a real directory: %+v, %v", s, err)
	}
}
