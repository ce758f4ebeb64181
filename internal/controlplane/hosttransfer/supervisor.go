package hosttransfer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// AssignedSupervisor returns the instance that must supervise the control plane in a directory. It is empty if this is
// the instance of the data directory that contains it. The supervision loop checks it in each iteration.
func AssignedSupervisor(folder string) (string, error) {
	data, err := uidisolation.ReadTrusted(folder, supervisorFileName)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(data)), err
}

// AssignSupervisor sets the instance (the ID of a data directory) that must supervise the control plane in a directory.
// `slipway move` calls it before it transfers the directory. Another instance that supervises the control plane stops
// within a second.
func AssignSupervisor(folder, instance string) error {
	if _, err := os.Stat(folder); err != nil {
		return err
	}
	_, err := datadir.WriteFile(supervisorFile(folder), []byte(instance+"\n"), 0o600)
	return err
}

// UnassignSupervisor makes the instance of the data directory supervise the control plane again. `slipway move` calls
// it.
func UnassignSupervisor(folder string) error {
	if err := os.Remove(supervisorFile(folder)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func supervisorFile(folder string) string { return filepath.Join(folder, supervisorFileName) }

// supervisorFileName is the file that AssignSupervisor writes. Existing directories contain it, and package
// uidisolation lists it and the name of the lock (managerFiles), so both names must stay.
const supervisorFileName = "keeper"

// SupervisorLock returns the path of the lock that the supervisor of a control plane holds. Package supervisor acquires
// it, and `slipway move` waits until it is free.
func SupervisorLock(folder string) string { return filepath.Join(folder, "supervisor.lock") }
