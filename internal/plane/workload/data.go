package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipwayhq/slipway/internal/componentfile"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/ownuser"
	"github.com/slipwayhq/slipway/internal/version"
)

// Reasons of the faults about a control plane's data.
const (
	// ReasonDataMissing says that a control plane ran here and its data is gone.
	ReasonDataMissing = "DataMissing"
	// ReasonDataVersion says that the version may not open the data.
	ReasonDataVersion = "DataVersion"
	// ReasonEncryptionKeys says that the keys are not those that the data is encrypted with.
	ReasonEncryptionKeys = "EncryptionKeysChanged"
)

// Data is what is known of a control plane's data.
type Data struct {
	// Exists: there is a database.
	Exists bool `json:"exists"`
	// Version of Kubernetes that opened it last; empty: none has.
	Version string `json:"version,omitempty"`
	// EncryptionKeys stands for the keys that objects may be encrypted with, as componentfile.KeySet says it; empty: none is.
	EncryptionKeys string `json:"encryptionKeys,omitempty"`
	// EncryptionMark is that of the last rewriting after which it was opened with fewer keys; empty: it never was.
	EncryptionMark string `json:"-"`
	// Restored is the snapshot that was restored last; Staged is the one that the next process restores.
	Restored Restore `json:"restored,omitzero"`
	Staged   Restore `json:"staged,omitzero"`
}

// ReadData returns what is known of the data. The record is the one of the last process, whether or not it lives.
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
	text, err := ownuser.Read(string(f), runFile)
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

// KeysProblem returns why the data may not be opened with the keys, nil if it may. It is not opened without those that it
// may be encrypted with: what is encrypted could not be read, and would be lost with the old keys. A mark says that everything is
// encrypted with the first of the keys, if the data was ever opened with them; see [Data.Rewritten].
func (d Data) KeysProblem(keys, mark string) error {
	if d.EncryptionKeys == "" || componentfile.OpenedBy(d.EncryptionKeys, keys, d.Rewritten(mark)) {
		return nil
	}
	return fault.New(fault.Invalid, ReasonEncryptionKeys, "The data of the control plane is encrypted with other keys than it is to be started with; restore their Secret from a backup")
}

// Rewritten reports whether a mark of a Secret is about this data. One that was there before an older snapshot took the place of the data
// is not: what is in the snapshot was not written since.
func (d Data) Rewritten(mark string) bool { return mark != "" && mark != d.Restored.SpentMark }

// Problem returns why a control plane of the version may not be started with the data, nil if it may. Kubernetes converts
// its objects from one minor version to the next, and not back.
func (d Data) Problem(to string) error {
	if d.Version == "" {
		return nil
	}
	if !d.Exists {
		return fault.New(fault.Invalid, ReasonDataMissing,
			"The data of the control plane is not here, although it ran Kubernetes %s; restore it from a backup, or delete the cluster: it is not started empty", d.Version)
	}
	from, err := version.Parse(d.Version)
	if err != nil {
		return fault.New(fault.Invalid, ReasonDataVersion, "The version that wrote the data of the control plane cannot be read; restore it from a backup").From(err)
	}
	target, err := version.Parse(to)
	if err != nil {
		return fault.New(fault.Invalid, ReasonDataVersion, "Kubernetes version %s cannot be read; set spec.version to one like v1.36.3", to).From(err)
	}
	switch {
	case target.Compare(from) < 0:
		return fault.New(fault.Invalid, ReasonDataVersion,
			"The data of the control plane was written by Kubernetes %s, which is newer than %s; use a release of slipway that includes %s or a newer version", d.Version, to, d.Version)
	case target.Major != from.Major || target.Minor > from.Minor+1:
		return fault.New(fault.Invalid, ReasonDataVersion,
			"The data of the control plane was written by Kubernetes %s; %s would skip a minor version, so upgrade to each one in between first", d.Version, to)
	}
	return nil
}
