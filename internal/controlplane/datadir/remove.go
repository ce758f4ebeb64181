package datadir

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Remove deletes all files of Slipway for `slipway down --delete`, and the directory if it is empty afterwards.
// Otherwise it returns the names of the other files. The version and the lock are deleted last, because [Open] rejects
// a directory that contains other files without them. Each path of [Dir] must be listed.
func (h *Handle) Remove() (left []string, err error) {
	dir := h.Dir
	for _, path := range []string{
		dir.Kubeconfig(), dir.ManagerKubeconfig(), dir.PKI(), dir.Etcd(), dir.Planes(), dir.Balancers(), dir.TransferRecords(), dir.Images(), dir.Bundles(), dir.Snapshots(), dir.Simulated(), dir.Kubernetes(), dir.Path("log"), dir.run(), dir.supervision(), dir.SupervisorLock(), dir.node(), dir.flags(), dir.EncryptedWith(),
		dir.versions(), dir.instance(), dir.version(), dir.Lock(),
	} {
		if err := os.RemoveAll(path); err != nil {
			return nil, fmt.Errorf("delete %s: %w", path, err)
		}
	}
	entries, err := os.ReadDir(string(dir))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && !e.IsDir() && isLeftover(e.Name()) {
			if err := os.Remove(dir.Path(e.Name())); err != nil {
				return nil, err
			}
			continue
		}
		left = append(left, e.Name())
	}
	slices.Sort(left)
	if err := os.Remove(string(dir)); err != nil && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EBUSY) {
		return left, err
	}
	return left, nil
}

// isLeftover reports whether the file is a temporary file of an interrupted write (see [WriteFile]). The list must
// contain each file that [WriteFile] writes directly in the data directory.
func isLeftover(name string) bool {
	for _, of := range []string{"probe", "version", "instance", "run.json", "flags.json", "encrypted-with.json", "node", "written-by.json", "supervision.json", "kubeconfig", "manager.kubeconfig"} {
		if strings.HasPrefix(name, "."+of+".") {
			return true
		}
	}
	return false
}
