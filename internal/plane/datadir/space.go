package datadir

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/fault"
)

// ReasonDiskFull is the reason of the fault for a directory whose disk has no space left.
const ReasonDiskFull = "DiskFull"

const (
	// fullBelow is the free space, in bytes, below which a disk counts as full: etcd needs some megabytes at once when its database grows.
	fullBelow = 16 << 20
	// lowBelow is the free space, in bytes, below which a warning is due.
	lowBelow = 200 << 20
)

// Space is the space of the disk that a data directory is on, in bytes.
type Space struct {
	Free  int64 `json:"free"`
	Total int64 `json:"total"`
}

// SpaceOf returns the space of the disk of a directory, or of the closest folder above it that exists.
func SpaceOf(dir Dir) (Space, error) { return spaceOf(dir, unix.Statfs) }

func spaceOf(dir Dir, statfs func(string, *unix.Statfs_t) error) (Space, error) {
	var st unix.Statfs_t
	path := string(dir)
	err := statfs(path, &st)
	for os.IsNotExist(err) && path != "/" {
		path = string(Dir(path).parent())
		err = statfs(path, &st)
	}
	if err != nil {
		return Space{}, fmt.Errorf("read the free space of %s: %w", path, err)
	}
	free := st.Bavail
	if os.Geteuid() == 0 { // what is reserved for root is free for root
		free = st.Bfree
	}
	return Space{Free: int64(free) * st.Bsize, Total: int64(st.Blocks) * st.Bsize}, nil
}

// IsFull reports whether the database can grow no more.
func (s Space) IsFull() bool { return s.Total > 0 && s.Free < fullBelow }

// IsLow reports whether there is so little left that a warning is due.
func (s Space) IsLow() bool { return s.Total > 0 && s.Free < lowBelow }

// String is how much is free.
func (s Space) String() string {
	return fmt.Sprintf("%d of %d MiB free", s.Free>>20, s.Total>>20)
}

// Full is the fault of a directory whose disk is full; again is the command that goes on when there is space.
func Full(dir Dir, s Space, again string) *fault.Fault {
	return fault.New(fault.Invalid, ReasonDiskFull, "the disk of %s is full (%s): free some space, then %s", dir, s, again)
}
