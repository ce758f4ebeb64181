package datadir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// format is the version of the layout that this binary writes. It increases when older binaries can no longer
// read the directory.
const format = 1

// Handle is a data directory that this process holds. `slipway up`, `slipway manager` and `slipway down` hold one.
type Handle struct {
	Dir
	// Instance is the stable random ID of the directory (16 hex digits).
	Instance string

	lock *Lock
}

// UpdateHolder replaces the holder in the lock file, when more is known than at the start, or to restore the previous
// holder if the directory was not used. `slipway manager` calls it.
func (h *Handle) UpdateHolder(holder Holder) error { return writeHolder(h.lock.file, holder) }

// Open is called by `slipway up`, `slipway manager` and `slipway down --delete` before they use a data directory. It
// creates the directory if it is missing, acquires its lock for holder, checks the format and creates the instance ID.
// A directory that is not a data directory of Slipway is not changed. Errors are faults of kind Invalid with one of the
// Reasons of this package.
func Open(dir Dir, holder Holder) (*Handle, error) {
	if err := createFolder(string(dir)); err != nil {
		return nil, unusable(dir, err)
	}
	if err := checkMark(dir); err != nil {
		return nil, err
	}
	if err := writable(dir); err != nil {
		return nil, err
	}
	lock, other, held, err := Acquire(dir.Lock(), holder)
	if err != nil {
		return nil, unusable(dir, err)
	}
	if held {
		return nil, HeldFault(dir, other)
	}
	h := &Handle{Dir: dir, lock: lock}
	if err := h.prepare(); err != nil {
		_ = lock.Release()
		return nil, err
	}
	return h, nil
}

// Close releases the lock.
func (h *Handle) Close() error { return h.lock.Release() }

func (h *Handle) prepare() error {
	if err := CheckFormat(h.Dir); err != nil {
		return err
	}
	if _, err := WriteFile(h.version(), []byte(magic+strconv.Itoa(format)+"\n"), 0o600); err != nil {
		return unusable(h.Dir, err)
	}
	id, err := ReadInstance(h.Dir)
	if errors.Is(err, os.ErrNotExist) {
		id, err = newInstance(h.Dir)
	}
	if err != nil {
		return unusable(h.Dir, err)
	}
	h.Instance = id
	return nil
}

// writable is called for a data directory of Slipway or an empty one. It restricts the mode, because other
// users may have had access.
func writable(dir Dir) error {
	if err := os.Chmod(string(dir), 0o700); err != nil {
		return unusable(dir, err)
	}
	f, err := os.CreateTemp(string(dir), ".probe.*")
	if err != nil {
		return unusable(dir, err)
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	return nil
}

// magic begins the file version, which marks a data directory of Slipway.
const magic = "slipway data directory, format "

// checkMark rejects a directory with other content, or a shared one.
func checkMark(dir Dir) error {
	info, err := os.Stat(string(dir))
	if err != nil {
		return unusable(dir, err)
	}
	if info.Mode()&os.ModeSticky != 0 {
		return fault.New(fault.Invalid, reasonForeign, "data directory %s is shared by several users; choose a directory in it as --data-dir", dir)
	}
	if hasMark(dir) {
		return nil
	}
	entries, err := os.ReadDir(string(dir))
	if err != nil {
		return unusable(dir, err)
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == kubernetes, name == bundles:
		case name == "lock", isTemporary(name): // left by an interrupted first start
		default:
			return fault.New(fault.Invalid, reasonForeign,
				"data directory %s contains files of other programs (%s); choose another --data-dir", dir, e.Name())
		}
	}
	return nil
}

// isTemporary reports whether the file is a temporary file of a write.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, ".probe.") || strings.HasPrefix(name, ".version.") || strings.HasPrefix(name, ".instance.")
}

// hasMark reports whether the directory has the mark of Slipway. The first format had no mark, but only a
// number and an instance ID.
func hasMark(dir Dir) bool {
	data, err := os.ReadFile(dir.version())
	if err != nil {
		return false
	}
	if strings.HasPrefix(string(data), magic) {
		return true
	}
	id, err := ReadInstance(dir)
	return strings.TrimSpace(string(data)) == "1" && err == nil && len(id) == 16
}

// CheckFormat returns a fault with the reason DataDirectoryNewer for a directory with a newer format, and nil for the
// current format or an empty directory. [Open] and `slipway versions` call it.
func CheckFormat(dir Dir) error {
	data, err := os.ReadFile(dir.version())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unusable(dir, err)
	}
	found := strings.TrimSpace(strings.TrimPrefix(string(data), magic))
	if n, err := strconv.Atoi(found); err != nil || n > format || n < 1 {
		return newer(dir, found)
	}
	return nil
}

// ReadInstance returns the instance ID of a directory, or os.ErrNotExist if it was never opened. [Open],
// `slipway image load`, `slipway logs` and `slipway move` call it.
func ReadInstance(dir Dir) (string, error) {
	data, err := os.ReadFile(dir.instance())
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(data)), nil
}

func newInstance(dir Dir) (string, error) {
	raw := make([]byte, 8)
	if _, err := rand.Read(raw); err != nil {
		return "", err
	}
	id := hex.EncodeToString(raw)
	_, err := WriteFile(dir.instance(), []byte(id+"\n"), 0o600)
	return id, err
}
