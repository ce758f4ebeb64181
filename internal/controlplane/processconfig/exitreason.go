package processconfig

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// maxReason limits the recorded reason of an exit, in bytes.
const maxReason = 1 << 10

// exitRecord is the reason why a process exited.
type exitRecord struct {
	PID    int    `json:"pid"`
	Reason string `json:"reason"`
}

func (f Folder) end() string { return f.path(endFile) }

// WriteEnd records the reason why this process, of a hosted control plane, exits, because the supervisor otherwise only
// gets an exit status. The hidden command `slipway control-plane run` calls it.
func (f Folder) WriteEnd(reason string) error {
	data, err := json.Marshal(exitRecord{PID: os.Getpid(), Reason: bounded(reason)})
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(f.end(), append(data, '\n'), 0o600)
	return err
}

// ReadEnd returns the reason why the process with this PID exited, or an empty string if it is unknown. The supervisor
// calls it after the process has exited.
func (f Folder) ReadEnd(pid int) string {
	data, err := uidisolation.Read(string(f), endFile)
	var e exitRecord
	if err != nil || json.Unmarshal(data, &e) != nil || e.PID != pid || pid == 0 {
		return ""
	}
	return bounded(e.Reason)
}

// ForgetEnd deletes the record of an earlier process, which may have run as another user. The supervisor calls it
// before it starts a process.
func (f Folder) ForgetEnd() { _ = os.Remove(filepath.Clean(f.end())) }

// bounded truncates a text to valid UTF-8.
func bounded(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}
