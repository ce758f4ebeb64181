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

// history is the persistent state of the supervision of one control plane.
type history struct {
	Restarts int      `json:"restarts"`
	LastExit string   `json:"lastExit,omitempty"`
	LastLog  []string `json:"lastLog,omitempty"`
}

func pastPath(f processconfig.Folder) string { return filepath.Join(string(f), pastFile) }

const pastFile = "supervision.json"

func readPast(f processconfig.Folder) (history, error) {
	var p history
	data, err := uidisolation.ReadTrusted(string(f), pastFile)
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("read %s: %w", pastPath(f), err)
	}
	return p, nil
}

func (p history) write(f processconfig.Folder) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(pastPath(f), append(data, '\n'), 0o600)
	return err
}
