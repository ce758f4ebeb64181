package workload

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/ownuser"
)

// maxReason is how much of the reason of an end is recorded, in bytes.
const maxReason = 1 << 10

// ended is why a process ended.
type ended struct {
	PID    int    `json:"pid"`
	Reason string `json:"reason"`
}

func (f Folder) end() string { return f.path(endFile) }

// WriteEnd records why this process ends, for the supervisor, which otherwise knows an exit status only.
func (f Folder) WriteEnd(reason string) error {
	data, err := json.Marshal(ended{PID: os.Getpid(), Reason: bounded(reason)})
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(f.end(), append(data, '\n'), 0o600)
	return err
}

// ReadEnd returns why the process with this ID ended; empty: that is not known.
func (f Folder) ReadEnd(pid int) string {
	data, err := ownuser.Read(string(f), endFile)
	var e ended
	if err != nil || json.Unmarshal(data, &e) != nil || e.PID != pid || pid == 0 {
		return ""
	}
	return bounded(e.Reason)
}

// ForgetEnd removes what an earlier process recorded, which may have run as another user.
func (f Folder) ForgetEnd() { _ = os.Remove(filepath.Clean(f.end())) }

// bounded is the beginning of a text, as valid UTF-8.
func bounded(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}
