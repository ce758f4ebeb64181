package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/ownuser"
	"github.com/slipwayhq/slipway/internal/version"
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
	// SpentMark is the mark of a rewriting that was of the data from before.
	SpentMark string `json:"spentMark,omitempty"`
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

// What may be in a record of a restore. Its ID is part of the name of a folder.
var (
	restoreID    = regexp.MustCompile(`^[0-9A-Za-z-]{0,64}$`)
	snapshotName = regexp.MustCompile(`^[0-9A-Za-z.-]{0,253}$`)
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
		return Restore{}, fmt.Errorf("read %s: %w", f.path(name), err)
	}
	if !r.isPlausible() {
		return Restore{}, fmt.Errorf("read %s: it is not the record of a restore", f.path(name))
	}
	return r, nil
}

// isPlausible reports whether a record says what one of a restore can say. A control plane that was taken over may have written it, and
// conditions show what it says.
func (r Restore) isPlausible() bool {
	return restoreID.MatchString(r.ID) && snapshotName.MatchString(r.Snapshot) && (r.Version == "" || version.IsVersion(r.Version)) && r.Revision >= 0
}
