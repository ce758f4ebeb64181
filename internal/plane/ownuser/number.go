package ownuser

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The numbers of users and groups of control planes: a range that distributions, systemd and /etc/subuid leave unused.
const (
	First = 1_900_000_000
	Count = 200_000_000
)

// IsOwn reports whether a number is one of users of control planes.
func IsOwn(id int) bool { return id >= First && id < First+Count }

// Of returns the user of the control plane in a folder, which is the group of that folder as well; false: it has none, or this program is not
// root, so that others could not give it files of theirs to read.
func Of(folder string) (user int, found bool) {
	var st unix.Stat_t
	if err := unix.Lstat(folder, &st); err != nil {
		return 0, false
	}
	isFolder := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if os.Geteuid() != 0 || !isFolder || st.Uid != 0 || !IsOwn(int(st.Gid)) {
		return 0, false
	}
	return int(st.Gid), true
}

// Assign returns the user of the control plane in a folder. A folder without one gets one that no folder beside it has. Numbers are drawn, so that
// those of other data directories of the host differ, too.
func Assign(folder string) (user int, err error) {
	if user, found := Of(folder); found {
		return user, nil
	}
	taken, err := usersIn(filepath.Dir(folder))
	if err != nil {
		return 0, err
	}
	for user == 0 || taken[user] {
		drawn, err := rand.Int(rand.Reader, big.NewInt(Count))
		if err != nil {
			return 0, err
		}
		user = First + int(drawn.Int64())
	}
	if err := os.Lchown(folder, os.Geteuid(), user); err != nil {
		return 0, fmt.Errorf("give the control plane a user of its own: %w", err)
	}
	return user, nil
}

// usersIn are the users of the folders in a folder.
func usersIn(parent string) (map[int]bool, error) {
	entries, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := map[int]bool{}
	for _, e := range entries {
		if user, found := Of(filepath.Join(parent, e.Name())); found {
			out[user] = true
		}
	}
	return out, nil
}
