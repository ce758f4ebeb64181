package workload

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipwayhq/slipway/internal/plane/datadir"
)

// Names of what a [Delivery] has besides the files of the PKI folder.
const (
	DeliveredConfig = "config.json"
	DeliveredRecord = "data.json"
)

// Record is what is remembered of a control plane's data where the data itself cannot be read.
type Record struct {
	// Version of Kubernetes that opened it last; empty: none has.
	Version string `json:"version,omitempty"`
	// EncryptionKeys stands for the keys that objects may be encrypted with; empty: none is.
	EncryptionKeys string `json:"encryptionKeys,omitempty"`
}

// Data is what the record says of the data; exists tells whether what holds it is there.
func (r Record) Data(exists bool) Data {
	return Data{Exists: exists, Version: r.Version, EncryptionKeys: r.EncryptionKeys}
}

// Delivery is a folder by which a control plane gets its configuration, its authorities and keys, and what is remembered of its data: a
// mounted Secret.
type Delivery string

// Receive puts what was delivered into the folder of the control plane, unless it does not fit the data there: what is remembered to have
// existed and is gone is not begun empty.
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
		if strings.HasPrefix(name, ".") || name == DeliveredConfig || name == DeliveredRecord { // a mounted Secret has folders with a dot
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
	text, err := os.ReadFile(filepath.Join(string(d), DeliveredRecord))
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read %s: %w", DeliveredRecord, err)
	}
	return r, nil
}
