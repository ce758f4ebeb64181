package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/ownuser"
	"github.com/slipwayhq/slipway/internal/plane/workload"
)

// history is the persistent state of the supervision of one control plane.
type history struct {
	Restarts int      `json:"restarts"`
	LastExit string   `json:"lastExit,omitempty"`
	LastLog  []string `json:"lastLog,omitempty"`
}

func pastPath(f workload.Folder) string { return filepath.Join(string(f), pastFile) }

const pastFile = "supervision.json"

func readPast(f workload.Folder) (history, error) {
	var p history
	data, err := ownuser.ReadTrusted(string(f), pastFile)
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

func (p history) write(f workload.Folder) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(pastPath(f), append(data, '\n'), 0o600)
	return err
}
