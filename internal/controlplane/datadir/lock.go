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

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// Holder describes the process that holds a lock. Other commands, possibly of another version, read it from the lock
// file; the fields from ManagerOf on are set by `slipway manager`.
type Holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Since   time.Time `json:"since"`
	Version string    `json:"version,omitempty"`
	// ManagerOf is the API server of a manager that runs as a separate process. It is empty for other
	// holders.
	ManagerOf string `json:"managerOf,omitempty"`
	// Command is the command line of this manager. It remains in the lock file after the manager has ended,
	// together with ManagerOf.
	Command string `json:"command,omitempty"`
	// Kubeconfig, an absolute path, and Context define how the manager connects to the API server. They are
	// empty if it runs in a Pod or uses several files.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Context    string `json:"context,omitempty"`
	// Diagnostics is the local port that serves plans. Empty means none.
	Diagnostics string `json:"diagnostics,omitempty"`
	// Namespace and WatchFilter limit the objects that the manager reconciles. Empty means no limit.
	Namespace   string `json:"namespace,omitempty"`
	WatchFilter string `json:"watchFilter,omitempty"`
	// Lease is the namespace/name of the leader election lease. Empty means no leader election.
	Lease string `json:"lease,omitempty"`
	// Working means that the controllers of the manager run. With leader election, it means that the manager
	// is the leader.
	Working bool `json:"working,omitempty"`
}

// CurrentProcess returns this process as the holder of a lock. Callers of [Acquire] and [Open] pass it.
func CurrentProcess(now time.Time) Holder {
	host, _ := os.Hostname() // only informative
	return Holder{PID: os.Getpid(), Host: host, Since: now.UTC(), Version: buildinfo.Version()}
}

// maxHolder limits how much of a lock file is read, and readAttempts how often.
const maxHolder, readAttempts = 1 << 16, 5

// Lock is a held lock file, of a data directory, a hosted control plane or a load balancer. It is an open file
// description lock, which, unlike flock, can be probed without being acquired. The kernel releases it when the process
// exits.
type Lock struct{ file *os.File }

// Release releases the lock. [Handle.Close] calls it, and so do the other callers of [Acquire] at their end.
func (l *Lock) Release() error { return l.file.Close() }

// Acquire acquires the lock file at path for holder. If another process holds it, held is true and other describes that
// process. [Open], `slipway up`, `slipway move`, and the processes and supervisors of control planes and load balancers
// call it.
func Acquire(path string, holder Holder) (l *Lock, other Holder, held bool, err error) {
	flag := os.O_RDWR | os.O_CREATE
	if _, own := uidisolation.UserOfFolder(filepath.Dir(path)); own {
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

// Probe reports whether a running process holds the lock file at path, and which. A missing file counts as a free lock,
// and so does a foreign file that a control plane created at this path. Probing does not disturb the holder. [Inspect],
// childproc.Terminate, and the packages that start or stop control planes and load balancers call it.
func Probe(path string) (h Holder, held bool, err error) {
	f, err := uidisolation.Open(path, os.O_RDWR)
	if errors.Is(err, os.ErrNotExist) || uidisolation.IsForeign(err) {
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

// readHolder returns a zero Holder if the content cannot be parsed. It retries, because the content may be
// replaced during the read.
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

// writeHolder replaces the content in a single write, because other processes can read it at any time. Longer
// previous content is overwritten with spaces.
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
	case longer > maxHolder: // not written by Slipway
		if err := f.Truncate(0); err != nil {
			return err
		}
	case longer > 0:
		data = append(data, bytes.Repeat([]byte{' '}, int(longer))...)
	}
	_, err = f.WriteAt(append(data, '\n'), 0)
	return err
}
