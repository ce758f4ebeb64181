package ownuser

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Names in the folder of a control plane.
var (
	// ours are the files that the manager alone writes.
	ours = []string{"config.json", "supervision.json", "supervisor.lock", "keeper"}
	// shared are the folders that the manager and the process write to.
	shared = []string{"pki", "log"}
)

const (
	// staged is a folder that the manager fills, and stagedReady is the last file that it writes there: from then on it is the process's.
	staged, stagedReady = "restore", "request.json"
	// sharedMode is writable to owner and group, and lets each replace its own files alone.
	sharedMode = unix.S_ISVTX | 0o770
)

// Give gives the process of a control plane what it reads and writes in its folder, whichever user had it: one that ran as root before, and files
// that were written or restored by root. It may be called again and again, and continues where it was interrupted. It follows no links.
func Give(folder string, user int) error {
	top, err := openFolder(unix.AT_FDCWD, folder)
	if err != nil {
		return fmt.Errorf("open %s: %w", folder, err)
	}
	defer func() { _ = top.Close() }()
	var st unix.Stat_t
	if err := unix.Fstat(int(top.Fd()), &st); err != nil {
		return err
	}
	g := giver{user: user, first: st.Mode&0o7777 != sharedMode}
	names, err := top.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := g.giveTop(top, name); err != nil {
			return fmt.Errorf("give the control plane what is in %s: %w", folder, err)
		}
	}
	return g.share(top) // the last step: it says that everything was given once
}

// giver gives files to a user. first: no process of that user has run yet.
type giver struct {
	user  int
	first bool
}

func (g giver) giveTop(top *os.File, name string) error {
	switch {
	case slices.Contains(ours, name) || strings.HasPrefix(name, "."): // with a dot: what is being written
		return nil
	case !slices.Contains(shared, name):
		return g.give(top, name)
	}
	folder, err := openFolder(int(top.Fd()), name)
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	defer func() { _ = folder.Close() }()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, inside := range names {
		if strings.HasPrefix(inside, ".") {
			continue
		}
		if err := g.give(folder, inside); err != nil {
			return err
		}
	}
	return g.share(folder)
}

// share makes a folder one that root and the user write to.
func (g giver) share(folder *os.File) error {
	if err := folder.Chown(os.Geteuid(), g.user); err != nil {
		return err
	}
	return unix.Fchmod(int(folder.Fd()), sharedMode)
}

// give gives a file, or a folder with everything in it. It acts on what was opened, and never on a name again. A link, a pipe or a socket is
// left as it is: who has the folder removes it.
func (g giver) give(parent *os.File, name string) error {
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return g.giveFile(fd, name, st)
	case unix.S_IFDIR:
		return g.giveFolder(parent, name)
	}
	return nil
}

// giveFile gives a file. One with other names could be another user's, which the process has linked to: it is not given.
func (g giver) giveFile(fd int, name string, st unix.Stat_t) error {
	if int(st.Uid) == g.user && int(st.Gid) == g.user {
		return nil
	}
	if st.Nlink != 1 && !g.first {
		return fmt.Errorf("%s is a file of user %d that has other names, too: copy it, or remove it", name, st.Uid)
	}
	return unix.Fchownat(fd, "", g.user, g.user, unix.AT_EMPTY_PATH)
}

func (g giver) giveFolder(parent *os.File, name string) error {
	folder, err := openFolder(int(parent.Fd()), name)
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	defer func() { _ = folder.Close() }()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return err
	}
	if name == staged && !slices.Contains(names, stagedReady) && !g.has(folder) {
		return nil
	}
	for _, inside := range names {
		if err := g.give(folder, inside); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return folder.Chown(g.user, g.user)
}

// has reports whether the user has a folder already.
func (g giver) has(folder *os.File) bool {
	var st unix.Stat_t
	return unix.Fstat(int(folder.Fd()), &st) == nil && int(st.Uid) == g.user
}

func openFolder(parent int, name string) (*os.File, error) {
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
