package etcd

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/ownuser"
)

// maxSocketPath is what the kernel accepts for a unix socket, less the
// terminating zero.
const maxSocketPath = 107

// clientSocket is the name of the socket for clients.
const clientSocket = "client.sock"

func socketURL(folder, name string) url.URL {
	return url.URL{Scheme: "unix", Path: filepath.Join(folder, name)}
}

// socketRecord is the file in the data folder with the name of the folder of sockets, where that is not the usual one.
const socketRecord = "socket-folder"

// socketFolder is the data folder, or, where that path is too long for a
// socket, a private folder in the system's place for temporary files.
func socketFolder(dir string) (folder string, inside bool, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", false, err
	}
	if SocketInside(abs) {
		return abs, true, nil
	}
	if name := recordedSockets(abs); name != "" {
		return filepath.Join(os.TempDir(), name), false, nil
	}
	return usualSockets(abs), false, nil
}

// usualSockets is the folder of sockets that a path stands for.
func usualSockets(abs string) string {
	sum := sha256.Sum256([]byte(abs))
	return filepath.Join(os.TempDir(), "slipway-"+hex.EncodeToString(sum[:8]))
}

// recordedSockets is the name in the record of a data folder; empty: there is none. A control plane writes it, so that it may be anything.
func recordedSockets(dir string) string {
	file, err := os.OpenFile(filepath.Join(dir, socketRecord), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	content := make([]byte, 64)
	n, _ := io.ReadFull(file, content)
	digits, ok := strings.CutPrefix(string(content[:n]), socketPrefix)
	if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return socketPrefix + digits
}

// socketPrefix begins the names of folders that could not have the usual name.
const socketPrefix = "slipway-sockets-"

// sockets creates the folder of the member's sockets. Every user of the host can create the usual one first, whose name follows from the
// path of the data; the member then has one with another name, which it records.
func (c Config) sockets() (string, error) {
	abs, err := filepath.Abs(cmp.Or(c.Place, c.Dir))
	if err != nil || SocketInside(abs) {
		return c.Dir, err
	}
	if name := recordedSockets(c.Dir); name != "" { // of the last start
		if previous := filepath.Join(os.TempDir(), name); createPrivate(previous) == nil {
			if err := os.RemoveAll(previous); err != nil {
				return "", err
			}
		}
	}
	record := filepath.Join(c.Dir, socketRecord)
	if err := os.Remove(record); err != nil && !os.IsNotExist(err) {
		return "", err
	}
	folder := usualSockets(abs)
	if err := createPrivate(folder); fault.KindOf(err) != fault.Invalid {
		return folder, err
	}
	if folder, err = os.MkdirTemp("", socketPrefix); err != nil {
		return "", err
	}
	return folder, os.WriteFile(record, []byte(filepath.Base(folder)), 0o600)
}

// SocketInside reports whether a member with its data in this folder listens for clients in it, so that its socket goes where the
// folder goes.
func SocketInside(dir string) bool { return len(filepath.Join(dir, clientSocket)) <= maxSocketPath }

// createPrivate creates a folder, and refuses one that another client prepared.
func createPrivate(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(folder, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Mode&0o777 != 0o700 || int(st.Uid) != os.Geteuid() {
		return fault.New(fault.Invalid, "SocketFolderNotPrivate",
			"folder %s must be a directory of this user with mode 0700; remove it, or choose a shorter --data-dir", folder)
	}
	return nil
}

// ClearSockets removes the folder of sockets that an earlier process left, in the system's place for temporary files, which ran as this user or as that
// of another control plane: a member that runs as the user makes its own.
func ClearSockets(dir string, user int) error {
	folder, inside, err := socketFolder(dir)
	if err != nil || inside {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(folder, &st); err != nil {
		return nil // there is none
	}
	if owner := int(st.Uid); owner == user || owner != os.Geteuid() && !ownuser.IsOwn(owner) {
		return nil
	}
	return os.RemoveAll(folder)
}

// ClientSocket is where the member with its data in this folder listens for clients. Who connects checks which user does.
func ClientSocket(dir string) (string, error) {
	folder, _, err := socketFolder(dir)
	return filepath.Join(folder, clientSocket), err
}
