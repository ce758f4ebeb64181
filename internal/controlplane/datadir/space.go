package datadir

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/fault"
)

// reasonDiskFull is the reason of the fault for a full disk.
const reasonDiskFull = "DiskFull"

const (
	// fullBelow is the free space, in bytes, below which a disk counts as full. etcd needs several megabytes
	// at once when its database grows.
	fullBelow = 16 << 20
	// lowBelow is the free space, in bytes, below which a warning is shown.
	lowBelow = 200 << 20
)

// Space is the space of the disk with a data directory, in bytes. `slipway up` checks it before it starts, and `slipway
// status` shows it.
type Space struct {
	Free  int64 `json:"free"`
	Total int64 `json:"total"`
}

// SpaceOf returns the disk space of a directory, or of its closest existing parent. `slipway up`, `slipway status`,
// `slipway create cluster` and package supervisor call it.
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
	if os.Geteuid() == 0 { // root can use the reserved blocks
		free = st.Bfree
	}
	return Space{Free: int64(free) * st.Bsize, Total: int64(st.Blocks) * st.Bsize}, nil
}

// IsFull reports whether the database cannot grow any more. `slipway up`, `slipway status` and package supervisor
// explain failures with it.
func (s Space) IsFull() bool { return s.Total > 0 && s.Free < fullBelow }

// IsLow reports whether a warning is needed. `slipway up` and `slipway status` show the warning.
func (s Space) IsLow() bool { return s.Total > 0 && s.Free < lowBelow }

func (s Space) String() string {
	return fmt.Sprintf("%d of %d MiB free", s.Free>>20, s.Total>>20)
}

// DiskFullFault returns the fault for a directory on a full disk. The argument again is the command to run after space
// was freed. `slipway up` returns it.
func DiskFullFault(dir Dir, s Space, again string) *fault.Fault {
	return fault.New(fault.Invalid, reasonDiskFull, "the disk of %s is full (%s): free some space, then %s", dir, s, again)
}
