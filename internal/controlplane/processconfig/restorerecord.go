package processconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
	"github.com/slipwayhq/slipway/internal/version"
)

// Restore is a snapshot that replaces the data of a hosted control plane once. The HostedControlPlane controller writes
// the request (restore/request.json), and the process of the control plane records the result (restored.json).
type Restore struct {
	// ID identifies the restore among all restores of the control plane.
	ID string `json:"id"`
	// Snapshot is the name of the snapshot.
	Snapshot string `json:"snapshot"`
	// Version of Kubernetes that wrote it, or empty if unknown. EncryptionKeys is the fingerprint of the keys
	// that it needs.
	Version        string `json:"version,omitempty"`
	EncryptionKeys string `json:"encryptionKeys,omitempty"`
	// SpentMark is the mark of a rewrite of the previous data, which does not apply to the snapshot.
	SpentMark string `json:"spentMark,omitempty"`
	// Revision is a lower bound of the snapshot's etcd revision.
	Revision int64 `json:"revision,omitempty"`
	// At is the time of the restore. Zero means that it is not complete.
	At time.Time `json:"at,omitzero"`
}

// Restoring returns the directory of a restore in progress. It is deleted afterwards.
func (f Folder) Restoring() string { return f.path(restoreFolder) }

// RestoreSnapshot returns the path of the snapshot in this directory. Package hosted stores the snapshot there, and
// etcd.ApplyRestore reads it.
func (f Folder) RestoreSnapshot() string { return filepath.Join(f.Restoring(), "snapshot.db") }

// The directory and the request file of a restore. Package uidisolation has the same names (staged).
const (
	restoreFolder  = "restore"
	restoreRequest = restoreFolder + "/request.json"
)

// Valid values in a record of a restore. The ID is part of a directory name.
var (
	restoreID    = regexp.MustCompile(`^[0-9A-Za-z-]{0,64}$`)
	snapshotName = regexp.MustCompile(`^[0-9A-Za-z.-]{0,253}$`)
)

// WriteRestoreRequest makes the next process restore the snapshot at RestoreSnapshot. Package hosted calls it.
func (f Folder) WriteRestoreRequest(r Restore) error { return writeRestore(f.path(restoreRequest), r) }

// ReadRestoreRequest returns the restore for the next process. The zero value means none. etcd.ApplyRestore and the
// status of the control plane read it.
func (f Folder) ReadRestoreRequest() (Restore, error) { return f.readRestore(restoreRequest) }

// WriteRestored records the last restore. Package etcd calls it.
func (f Folder) WriteRestored(r Restore) error { return writeRestore(f.path(restoredFile), r) }

// ReadRestored returns the last restore. The zero value means none. Packages etcd and hosted/process and
// [Folder.ReadData] call it.
func (f Folder) ReadRestored() (Restore, error) { return f.readRestore(restoredFile) }

func writeRestore(path string, r Restore) error {
	return datadir.WriteJSON(path, r)
}

func (f Folder) readRestore(name string) (r Restore, err error) {
	text, err := uidisolation.Read(string(f), name)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return Restore{}, fmt.Errorf("read %s: %w", f.path(name), err)
	}
	if !r.isPlausible() {
		return Restore{}, fmt.Errorf("read %s: it is not the record of a restore", f.path(name))
	}
	return r, nil
}

// isPlausible reports whether a record contains valid values. A compromised control plane may have written
// it, and conditions show its content.
func (r Restore) isPlausible() bool {
	return restoreID.MatchString(r.ID) && snapshotName.MatchString(r.Snapshot) && (r.Version == "" || version.IsVersion(r.Version)) && r.Revision >= 0
}
