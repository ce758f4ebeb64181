package uidisolation

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNotRoot is returned if Slipway cannot start processes of other users because it does not run as root.
var ErrNotRoot = errors.New("slipway does not run as root")

// Unavailable returns why control planes in this directory cannot run as separate users. The supervisor calls it once,
// when the manager starts. If they can, it returns nil and creates the directory with access for root only, so that
// control planes cannot reach each other through "..".
func Unavailable(root string) error {
	if os.Geteuid() != 0 {
		return ErrNotRoot
	}
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !isMapped(string(text)) {
			return fmt.Errorf("the user namespace of this process has no users from %d to %d (%s)", firstID, firstID+idCount-1, file)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for name, capability := range map[string]uint{
		"CAP_CHOWN": unix.CAP_CHOWN, "CAP_DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "CAP_FOWNER": unix.CAP_FOWNER,
		"CAP_KILL": unix.CAP_KILL, "CAP_SETGID": unix.CAP_SETGID, "CAP_SETUID": unix.CAP_SETUID,
	} {
		if capabilities(status, "CapEff")&(1<<capability) == 0 {
			return fmt.Errorf("this process is root without %s", name)
		}
	}
	return probe(root)
}

// isMapped reports whether a line of the user namespace map covers the whole ID range of control planes.
func isMapped(text string) bool {
	for line := range strings.Lines(text) {
		var inside, outside, count int64
		if n, _ := fmt.Sscan(line, &inside, &outside, &count); n == 3 && inside <= firstID && inside+count >= firstID+idCount {
			return true
		}
	}
	return false
}

// capabilities returns a capability set from the text of /proc/PID/status.
func capabilities(status []byte, set string) uint64 {
	all, err := strconv.ParseUint(field(status, set), 16, 64)
	if err != nil {
		return 0
	}
	return all
}

// field returns the first value of a field in the text of /proc/PID/status.
func field(status []byte, name string) string {
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), name+":"); found {
			value, _, _ := strings.Cut(strings.TrimSpace(rest), "\t")
			return value
		}
	}
	return ""
}

// probe checks whether the file system of a directory supports file owners.
func probe(root string) error {
	if err := errors.Join(os.MkdirAll(root, 0o700), os.Chmod(root, 0o700)); err != nil {
		return err
	}
	f, err := os.CreateTemp(root, ".owner.*")
	if err != nil {
		return err
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	if err := f.Chown(firstID, firstID); err != nil {
		return fmt.Errorf("the file system of %s does not keep owners: %w", root, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Uid != firstID || st.Gid != firstID {
		return fmt.Errorf("the file system of %s does not keep owners", root)
	}
	return nil
}
