package custody

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/ownuser"
)

// Keeper returns the instance that is to keep the control plane in a folder; empty: the one whose data directory it is in.
func Keeper(folder string) (string, error) {
	data, err := ownuser.ReadOurs(folder, keeperFile)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(data)), err
}

// SetKeeper says which instance is to keep the control plane in a folder. Another one that does ends it, within a second.
func SetKeeper(folder, instance string) error {
	if _, err := os.Stat(folder); err != nil {
		return err
	}
	_, err := datadir.WriteFile(keeper(folder), []byte(instance+"\n"), 0o600)
	return err
}

// ClearKeeper leaves the control plane to the instance whose data directory its folder is in.
func ClearKeeper(folder string) error {
	if err := os.Remove(keeper(folder)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func keeper(folder string) string { return filepath.Join(folder, keeperFile) }

const keeperFile = "keeper"

// SupervisorLock is the path of the lock that the program holds which keeps the control plane in a folder running.
func SupervisorLock(folder string) string { return filepath.Join(folder, "supervisor.lock") }
