package processconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

// Reasons of faults for a control plane's data.
const (
	// ReasonDataMissing means that a control plane ran here and its data is missing.
	ReasonDataMissing = "DataMissing"
	// reasonDataVersion means that the version must not open the data.
	reasonDataVersion = "DataVersion"
	// ReasonEncryptionKeys means that the data is encrypted with other keys.
	ReasonEncryptionKeys = "EncryptionKeysChanged"
)

// Data describes the data in etcd of a hosted control plane, from which the controller and the process decide whether a
// version and its keys may open it. [Folder.ReadData] fills it.
type Data struct {
	// Exists means that there is a database.
	Exists bool `json:"exists"`
	// Version of Kubernetes that last opened it. Empty means none.
	Version string `json:"version,omitempty"`
	// EncryptionKeys is the fingerprint of the keys with which objects may be encrypted
	// (componentconfig.KeySet). Empty means none.
	EncryptionKeys string `json:"encryptionKeys,omitempty"`
	// EncryptionMark is the mark of the last rewrite after which the data was opened with fewer keys, or
	// empty.
	EncryptionMark string `json:"-"`
	// Restored is the snapshot that was restored last. Staged is the snapshot that the next process restores.
	Restored Restore `json:"restored,omitzero"`
	Staged   Restore `json:"staged,omitzero"`
}

// ReadData reads the state of the data, which the last process recorded, whether or not it still runs. The process
// calls it at its start, and packages supervisor and hosted call it for the status.
func (f Folder) ReadData() (Data, error) {
	var d Data
	switch _, err := os.Lstat(filepath.Join(f.Etcd(), "member")); {
	case err == nil:
		d.Exists = true
	case !errors.Is(err, os.ErrNotExist):
		return d, err
	}
	var err error
	if d.Restored, err = f.ReadRestored(); err != nil {
		return d, err
	}
	if d.Staged, err = f.ReadRestoreRequest(); err != nil {
		return d, err
	}
	text, err := uidisolation.Read(string(f), runFile)
	if errors.Is(err, os.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	var r Run
	if err := json.Unmarshal(text, &r); err != nil {
		return d, fmt.Errorf("read %s: %w", f.run(), err)
	}
	if r.Version != "" && !version.IsVersion(r.Version) { // it is shown in messages
		return d, fmt.Errorf("read %s: it does not name a version of Kubernetes", f.run())
	}
	d.Version, d.EncryptionKeys, d.EncryptionMark = r.Version, r.EncryptionKeys, r.EncryptionMark
	return d, nil
}

// KeysProblem returns why the data must not be opened with the keys, or nil. All keys with which data may be
// encrypted are required, because encrypted data could otherwise not be read, and would be lost with the old
// keys. With a mark, the first key suffices, because all data was rewritten with it, provided that the data
// was opened with this key before; see [Data.Rewritten]. Packages controlplane and hosted call it before data is
// opened.
func (d Data) KeysProblem(keys, mark string) error {
	if d.EncryptionKeys == "" || componentconfig.KeysSuffice(d.EncryptionKeys, keys, d.Rewritten(mark)) {
		return nil
	}
	return fault.New(fault.Invalid, ReasonEncryptionKeys, "The data of the control plane is encrypted with other keys than those of its Secret; restore the Secret from a backup")
}

// Rewritten reports whether the mark of a Secret applies to this data. It does not if an older snapshot was
// restored after the rewrite, because the content of the snapshot was not rewritten.
func (d Data) Rewritten(mark string) bool { return mark != "" && mark != d.Restored.SpentMark }

// Problem returns why a control plane with the version must not be started with the data, or nil. Kubernetes
// only converts objects from one minor version to the next, and not back. Packages controlplane and hosted call it
// before each start.
func (d Data) Problem(to string) error {
	if d.Version == "" {
		return nil
	}
	if !d.Exists {
		return fault.New(fault.Invalid, ReasonDataMissing,
			"The data of the control plane is missing, although it ran Kubernetes %s; restore it from a backup, or delete the cluster, because Slipway does not start it without data", d.Version)
	}
	from, err := version.Parse(d.Version)
	if err != nil {
		return fault.New(fault.Invalid, reasonDataVersion, "The version that wrote the data of the control plane cannot be read; restore it from a backup").From(err)
	}
	target, err := version.Parse(to)
	if err != nil {
		return fault.New(fault.Invalid, reasonDataVersion, "Kubernetes version %s cannot be read; set spec.version to one like v1.36.3", to).From(err)
	}
	switch {
	case target.Compare(from) < 0:
		return fault.New(fault.Invalid, reasonDataVersion,
			"The data of the control plane was written by Kubernetes %s, which is newer than %s; use a release of slipway that includes %s or a newer version", d.Version, to, d.Version)
	case target.Major != from.Major || target.Minor > from.Minor+1:
		return fault.New(fault.Invalid, reasonDataVersion,
			"The data of the control plane was written by Kubernetes %s; %s would skip a minor version, so upgrade to each one in between first", d.Version, to)
	}
	return nil
}
