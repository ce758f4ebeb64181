package ownuser

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openFiles is the folder of the files that a process has open. A name in it leads to the file itself, not to where that is.
const openFiles = "/proc/self/fd/"

// firstExecutable is above the descriptors that a child process is started with.
const firstExecutable = 100

// Executable opens the program at path for this process and its children, and returns a path that leads to it for every user. The file
// becomes one that all may execute who get at it.
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
