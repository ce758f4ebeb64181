package uidisolation

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openFiles is the directory of a process's open files. Its entries refer to the files themselves,
// independently of their paths.
const openFiles = "/proc/self/fd/"

// firstExecutable is higher than the descriptors that are passed to child processes.
const firstExecutable = 100

// Executable opens the program at path for this process and its children, and returns a path that every user can
// execute. The process of a hosted control plane with another Kubernetes version calls it before it changes its user.
// It makes the file executable for all users who can reach it.
func Executable(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if err := f.Chmod(0o555); err != nil {
		return "", err
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, firstExecutable)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, err)
	}
	return fmt.Sprint(openFiles, fd), nil
}
