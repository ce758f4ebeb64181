package uidisolation

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

// The range of user and group IDs for control planes. Distributions, systemd and /etc/subuid do not use it. The groups
// of existing directories are in it, so it can only grow.
const (
	firstID = 1_900_000_000
	idCount = 200_000_000
)

// IsControlPlaneUser reports whether the ID is in the range for control planes.
func IsControlPlaneUser(id int) bool { return id >= firstID && id < firstID+idCount }

// UserOfFolder returns the user of the control plane in a directory, which is also the group of the directory. It
// returns false if there is none, or if this program is not root, because then other users could not make it read their
// files. Package supervisor and the functions that read or write files of a control plane call it.
func UserOfFolder(folder string) (user int, found bool) {
	var st unix.Stat_t
	if err := unix.Lstat(folder, &st); err != nil {
		return 0, false
	}
	isFolder := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if os.Geteuid() != 0 || !isFolder || st.Uid != 0 || !IsControlPlaneUser(int(st.Gid)) {
		return 0, false
	}
	return int(st.Gid), true
}

// Assign returns the user of the control plane in a directory. The supervisor calls it before each start. If there is
// none yet, it allocates one that no sibling directory has. IDs are random, so that they also differ between data
// directories on the same host.
func Assign(folder string) (user int, err error) {
	if user, found := UserOfFolder(folder); found {
		return user, nil
	}
	taken, err := usersIn(filepath.Dir(folder))
	if err != nil {
		return 0, err
	}
	for user == 0 || taken[user] {
		drawn, err := rand.Int(rand.Reader, big.NewInt(idCount))
		if err != nil {
			return 0, err
		}
		user = firstID + int(drawn.Int64())
	}
	if err := os.Lchown(folder, os.Geteuid(), user); err != nil {
		return 0, fmt.Errorf("give the control plane a user of its own: %w", err)
	}
	return user, nil
}

// usersIn returns the users of all subdirectories.
func usersIn(parent string) (map[int]bool, error) {
	entries, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := map[int]bool{}
	for _, e := range entries {
		if user, found := UserOfFolder(filepath.Join(parent, e.Name())); found {
			out[user] = true
		}
	}
	return out, nil
}
