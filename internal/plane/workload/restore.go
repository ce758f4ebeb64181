package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/ownuser"
)

// Restore is a snapshot that takes the place of the data of a control plane, once.
type Restore struct {
	// ID tells it from every other restore of the control plane.
	ID string `json:"id"`
	// Snapshot is its name.
	Snapshot string `json:"snapshot"`
	// Version of Kubernetes that wrote it; empty: not known. EncryptionKeys stands for the keys that it needs.
	Version        string `json:"version,omitempty"`
	EncryptionKeys string `json:"encryptionKeys,omitempty"`
	// Revision of etcd that it has at least.
	Revision int64 `json:"revision,omitempty"`
	// At is when it was restored; zero: it was not yet.
	At time.Time `json:"at,omitzero"`
}

// Restoring is the folder of a restore that is under way; it is gone afterwards.
func (f Folder) Restoring() string { return f.path(restoreFolder) }

// RestoreSnapshot is the snapshot in it.
func (f Folder) RestoreSnapshot() string { return filepath.Join(f.Restoring(), "snapshot.db") }

const (
	restoreFolder  = "restore"
	restoreRequest = restoreFolder + "/request.json"
)

// WriteRestoreRequest asks the next process to restore the snapshot that is in its place.
func (f Folder) WriteRestoreRequest(r Restore) error { return writeRestore(f.path(restoreRequest), r) }

// ReadRestoreRequest returns what the next process is to restore; the zero value: nothing.
func (f Folder) ReadRestoreRequest() (Restore, error) { return f.readRestore(restoreRequest) }

// WriteRestored records what was restored last.
func (f Folder) WriteRestored(r Restore) error { return writeRestore(f.path(restoredFile), r) }

// ReadRestored returns what was restored last; the zero value: nothing ever was.
func (f Folder) ReadRestored() (Restore, error) { return f.readRestore(restoredFile) }

func writeRestore(path string, r Restore) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(path, append(text, '\n'), 0o600)
	return err
}

func (f Folder) readRestore(name string) (r Restore, err error) {
	text, err := ownuser.Read(string(f), name)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read %s: %w", f.path(name), err)
	}
	return r, nil
}
