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

	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
	"github.com/slipwayhq/slipway/internal/fault"
)

// maxSocketPath is the maximum length of a Unix socket path, without the terminating zero.
const maxSocketPath = 107

// clientSocket is the name of the socket for clients.
const clientSocket = "client.sock"

// socketURL returns the URL at which etcd listens on a socket. [Start] configures the member with it.
func socketURL(folder, name string) url.URL {
	return url.URL{Scheme: "unix", Path: filepath.Join(folder, name)}
}

// socketRecord is the file in the data directory with the name of the socket directory, if this is not the
// default one.
const socketRecord = "socket-folder"

// socketFolder returns the data directory or, if its path is too long for a socket, a private directory in
// the system's directory for temporary files.
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

// usualSockets returns the default socket directory for a data directory.
func usualSockets(abs string) string {
	sum := sha256.Sum256([]byte(abs))
	return filepath.Join(os.TempDir(), "slipway-"+hex.EncodeToString(sum[:8]))
}

// recordedSockets returns the recorded name of the socket directory, or an empty string. The record is
// validated, because a control plane writes it.
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

// socketPrefix begins the names of socket directories without the default name.
const socketPrefix = "slipway-sockets-"

// sockets creates the directory of the member's sockets before the member starts. [ClientSocket] must find the same
// directory. The default name follows from the path of the data directory, therefore any user of the host could create
// it first. In this case, the member uses a random name, which it records. [Start] calls it.
func (c Config) sockets() (string, error) {
	abs, err := filepath.Abs(cmp.Or(c.ExternalPath, c.Dir))
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

// SocketInside reports whether the sockets of a member are in its data directory, so that they move together with it.
// Run.Relocatable in run.json depends on it, and `slipway move` checks it for the path at the target.
func SocketInside(dir string) bool { return len(filepath.Join(dir, clientSocket)) <= maxSocketPath }

// createPrivate creates a directory, and rejects one that another user prepared.
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

// ClearSockets deletes the socket directory in the system's directory for temporary files that an earlier process left,
// if this process ran as the current user or as the user of another control plane. The process of a hosted control
// plane calls it before it changes its user. A member that runs as the given user creates a new one.
func ClearSockets(dir string, user int) error {
	folder, inside, err := socketFolder(dir)
	if err != nil || inside {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(folder, &st); err != nil {
		return nil // it does not exist
	}
	if owner := int(st.Uid); owner == user || owner != os.Geteuid() && !uidisolation.IsControlPlaneUser(owner) {
		return nil
	}
	return os.RemoveAll(folder)
}

// ClientSocket returns the client socket of the member with this data directory, for programs that take etcd snapshots.
// Clients must verify the user of the server. Package hosted/snapshots calls it.
func ClientSocket(dir string) (string, error) {
	folder, _, err := socketFolder(dir)
	return filepath.Join(folder, clientSocket), err
}
