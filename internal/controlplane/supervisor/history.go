package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// history is the persistent state of the supervision of one control plane, in supervision.json. The supervision loop
// writes it after an unexpected exit, and [Status] contains it. The JSON names must stay, because other versions of
// Slipway wrote the file.
type history struct {
	Restarts int      `json:"restarts"`
	LastExit string   `json:"lastExit,omitempty"`
	LastLog  []string `json:"lastLog,omitempty"`
}

func historyPath(f processconfig.Folder) string { return filepath.Join(string(f), historyFile) }

// historyFile is also in the list managerFiles of package uidisolation, so that the control plane cannot replace it.
const historyFile = "supervision.json"

// readHistory reads the restarts and the last exit from the directory. The loop and status.go call it.
func readHistory(f processconfig.Folder) (history, error) {
	var p history
	data, err := uidisolation.ReadTrusted(string(f), historyFile)
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("read %s: %w", historyPath(f), err)
	}
	return p, nil
}

// write replaces the stored history. The supervision loop calls it after each exit.
func (p history) write(f processconfig.Folder) error {
	return datadir.WriteJSON(historyPath(f), p)
}
