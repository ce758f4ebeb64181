package processconfig

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
)

// Entries of a [Delivery] in addition to the files of the PKI directory. Processes of other versions of Slipway read
// them, so they must stay.
const (
	DeliveredConfig = "config.json"
	DeliveredRecord = "data.json"
)

// Record describes the data of a control plane when the data itself cannot be read, because it is on the volume of a
// Pod. Package hosted/statefulset writes it.
type Record struct {
	// Version of Kubernetes that last opened it. Empty means none.
	Version string `json:"version,omitempty"`
	// EncryptionKeys is the fingerprint of the keys with which objects may be encrypted. Empty means none.
	EncryptionKeys string `json:"encryptionKeys,omitempty"`
}

// Data returns the record as Data. exists reports whether the volume with the data exists.
func (r Record) Data(exists bool) Data {
	return Data{Exists: exists, Version: r.Version, EncryptionKeys: r.EncryptionKeys}
}

// Delivery is a mounted Secret that contains, for a hosted control plane in a Pod (package hosted/statefulset), the
// configuration of a control plane, its CAs and keys, and the record of its data. The hidden command `slipway
// control-plane run` receives it.
type Delivery string

// Receive copies the delivery to the directory of the control plane. The process in the Pod calls it at its start. It
// returns an error if the existing data does not match the record, so that a control plane whose data is lost is not
// started empty.
func (d Delivery) Receive(f Folder) error {
	c, err := Load(filepath.Join(string(d), DeliveredConfig))
	if err != nil {
		return err
	}
	record, err := d.record()
	if err != nil {
		return err
	}
	data, err := f.ReadData()
	if err != nil {
		return err
	}
	data.Version, data.EncryptionKeys = cmp.Or(data.Version, record.Version), cmp.Or(data.EncryptionKeys, record.EncryptionKeys)
	if err := errors.Join(data.Problem(c.Version), data.KeysProblem(c.EncryptionKeys, c.EncryptionMark)); err != nil {
		return err
	}
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || name == DeliveredConfig || name == DeliveredRecord { // dot: of the Secret mount
			continue
		}
		content, err := os.ReadFile(filepath.Join(string(d), name))
		if err != nil {
			return err
		}
		if _, err := datadir.WriteFile(filepath.Join(f.PKI(), name), content, 0o600); err != nil {
			return err
		}
	}
	return c.Save(f.Config())
}

func (d Delivery) record() (r Record, err error) {
	_, err = datadir.ReadJSON(filepath.Join(string(d), DeliveredRecord), &r)
	return r, err
}
