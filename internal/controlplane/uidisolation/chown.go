package uidisolation

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Entries of the directory of a control plane. The names must match those in packages processconfig, supervisor and
// hosttransfer.
var (
	// managerFiles are files that only the manager writes.
	managerFiles = []string{"config.json", "supervision.json", "supervisor.lock", "keeper"}
	// sharedFolders are directories that both the manager and the process write to.
	sharedFolders = []string{"pki", "log"}
)

const (
	// staged is a directory that the manager fills. After the manager has written its last file, stagedReady,
	// the directory is given to the process.
	staged, stagedReady = "restore", "request.json"
	// sharedMode makes a directory writable for owner and group, and lets each only replace its own files.
	sharedMode = unix.S_ISVTX | 0o770
)

// ChownFolder is called by the process of a hosted control plane while it is root, before [SwitchUser]. It changes the
// owner of the files in the directory of the control plane to the user, whether they were created by a process that ran
// as root, or written or restored by root. It is idempotent and continues after an interruption. It follows no links.
func ChownFolder(folder string, user int) error {
	top, err := openFolder(unix.AT_FDCWD, folder)
	if err != nil {
		return fmt.Errorf("open %s: %w", folder, err)
	}
	defer func() { _ = top.Close() }()
	var st unix.Stat_t
	if err := unix.Fstat(int(top.Fd()), &st); err != nil {
		return err
	}
	g := ownerChanger{user: user, first: st.Mode&0o7777 != sharedMode}
	names, err := top.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := g.giveTop(top, name); err != nil {
			return fmt.Errorf("give the control plane what is in %s: %w", folder, err)
		}
	}
	return g.share(top) // last, because the mode marks that all files were given
}

// ownerChanger changes owners. first means that no process of the user has run yet.
type ownerChanger struct {
	user  int
	first bool
}

func (g ownerChanger) giveTop(top *os.File, name string) error {
	switch {
	case slices.Contains(managerFiles, name) || strings.HasPrefix(name, "."): // names with a dot are being written
		return nil
	case !slices.Contains(sharedFolders, name):
		return g.changeOwner(top, name)
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
		if err := g.changeOwner(folder, inside); err != nil {
			return err
		}
	}
	return g.share(folder)
}

// share makes a directory writable for root and the user.
func (g ownerChanger) share(folder *os.File) error {
	if err := folder.Chown(os.Geteuid(), g.user); err != nil {
		return err
	}
	return unix.Fchmod(int(folder.Fd()), sharedMode)
}

// changeOwner changes the owner of a file, or of a directory with its content. It uses the open file and never
// resolves the name again. Links, pipes and sockets are not changed; the owner of the directory can remove
// them.
func (g ownerChanger) changeOwner(parent *os.File, name string) error {
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

// giveFile changes the owner of a file. It rejects a file with several hard links, because the process could
// have linked a file of another user.
func (g ownerChanger) giveFile(fd int, name string, st unix.Stat_t) error {
	if int(st.Uid) == g.user && int(st.Gid) == g.user {
		return nil
	}
	if st.Nlink != 1 && !g.first {
		return fmt.Errorf("%s is a file of user %d that has other names, too: copy it, or remove it", name, st.Uid)
	}
	return unix.Fchownat(fd, "", g.user, g.user, unix.AT_EMPTY_PATH)
}

func (g ownerChanger) giveFolder(parent *os.File, name string) error {
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
		if err := g.changeOwner(folder, inside); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return folder.Chown(g.user, g.user)
}

// has reports whether the user already owns the directory.
func (g ownerChanger) has(folder *os.File) bool {
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
