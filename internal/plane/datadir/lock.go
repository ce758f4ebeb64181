package datadir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/plane/ownuser"
)

// Holder says which process holds a lock.
type Holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Since   time.Time `json:"since"`
	Version string    `json:"version,omitempty"`
	// ManagerOf is the API server that a manager in a process of its own works for; empty: the holder is none.
	ManagerOf string `json:"managerOf,omitempty"`
	// Command is how that manager was started. It stays in the lock file when it has ended, with ManagerOf.
	Command string `json:"command,omitempty"`
	// Kubeconfig, an absolute path, and Context are how it reaches that API server; empty: it runs in a Pod, or has several files.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Context    string `json:"context,omitempty"`
	// Diagnostics is the port of this machine at which it serves plans; empty: it serves none.
	Diagnostics string `json:"diagnostics,omitempty"`
	// Namespace and WatchFilter limit the objects that it works on; empty: to nothing.
	Namespace   string `json:"namespace,omitempty"`
	WatchFilter string `json:"watchFilter,omitempty"`
	// Lease, namespace/name, is the one by which it and others elect the one that works; empty: it does not elect.
	Lease string `json:"lease,omitempty"`
	// Working: its controllers run; where managers elect one, this one was elected.
	Working bool `json:"working,omitempty"`
}

// maxHolder is how much of a lock file is read, and readAttempts how often.
const maxHolder, readAttempts = 1 << 16, 5

// Lock is a held lock file (an open file description lock: unlike flock, it can
// be asked about without being taken). The kernel releases it when the process
// ends, however it ends.
type Lock struct{ file *os.File }

// Release gives the lock up.
func (l *Lock) Release() error { return l.file.Close() }

// Acquire takes the lock file at path for holder. held is true, with the other
// holder, where another process has it.
func Acquire(path string, holder Holder) (l *Lock, other Holder, held bool, err error) {
	flag := os.O_RDWR | os.O_CREATE
	if _, own := ownuser.Of(filepath.Dir(path)); own {
		flag |= unix.O_NOFOLLOW
	}
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, Holder{}, false, err
	}
	whole := unix.Flock_t{Type: unix.F_WRLCK}
	switch err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &whole); {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES):
		other := readHolder(f)
		_ = f.Close()
		return nil, other, true, nil
	case err != nil:
		_ = f.Close()
		return nil, Holder{}, false, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := writeHolder(f, holder); err != nil {
		_ = f.Close()
		return nil, Holder{}, false, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Lock{file: f}, Holder{}, false, nil
}

// Probe tells whether a living process holds the lock file at path, and which.
// A missing file is a free lock, and so is what a control plane put in the place of its lock. It does not disturb the holder.
func Probe(path string) (h Holder, held bool, err error) {
	f, err := ownuser.Open(path, os.O_RDWR)
	if errors.Is(err, os.ErrNotExist) || ownuser.IsForeign(err) {
		return Holder{}, false, nil
	}
	if err != nil {
		return Holder{}, false, err
	}
	defer func() { _ = f.Close() }()
	conflict := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &conflict); err != nil {
		return Holder{}, false, fmt.Errorf("probe lock %s: %w", path, err)
	}
	return readHolder(f), conflict.Type != unix.F_UNLCK, nil
}

// readHolder returns a zero Holder where the content is not (yet) readable. What is being replaced while it is read is read again.
func readHolder(f *os.File) Holder {
	data := make([]byte, maxHolder)
	for range readAttempts {
		var h Holder
		n, err := f.ReadAt(data, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return Holder{}
		}
		if json.Unmarshal(data[:n], &h) == nil {
			return h
		}
	}
	return Holder{}
}

// writeHolder replaces what the file says in one write, since others read it at any time: what is longer is overwritten with spaces.
func writeHolder(f *os.File, h Holder) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	switch longer := info.Size() - 1 - int64(len(data)); {
	case longer > maxHolder: // nothing of ours
		if err := f.Truncate(0); err != nil {
			return err
		}
	case longer > 0:
		data = append(data, bytes.Repeat([]byte{' '}, int(longer))...)
	}
	_, err = f.WriteAt(append(data, '\n'), 0)
	return err
}
