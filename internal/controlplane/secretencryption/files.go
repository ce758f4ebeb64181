package secretencryption

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"time"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of faults.
const (
	// reasonKeyMissing means that a key which the data needs is missing.
	reasonKeyMissing = "EncryptionKeyMissing"
	// reasonKeysInvalid means that the key file is invalid.
	reasonKeysInvalid = "EncryptionKeysInvalid"
	// reasonBusy means that another process is changing the keys.
	reasonBusy = "EncryptionKeysBusy"
)

// keyLength is the length of an XSalsa20 key, in bytes.
const keyLength = 32

// encryptionKey encrypts Secrets of the management cluster. The [Rewriter] compares the keys of stored Secrets with it.
type encryptionKey struct {
	// Name prefixes the data that the key encrypted.
	Name   string `json:"name"`
	Secret []byte `json:"secret"`
}

// fingerprint identifies the key in encrypted-with.json, so its computation must not change.
func (k encryptionKey) fingerprint() string {
	sum := sha256.Sum256(append([]byte(k.Name+"\n"), k.Secret...))
	return hex.EncodeToString(sum[:12])
}

// keyFile is the content of encryption-keys.json. Existing data directories contain it, so the JSON names must stay.
type keyFile struct {
	// Keys decrypt. The first one also encrypts.
	Keys []encryptionKey `json:"keys"`
}

// neededKeys lists the fingerprints of the keys with which data may be encrypted. It is in a separate file, so that a
// lost key file is detected.
type neededKeys struct {
	Keys []string `json:"keys"`
}

// Files are the files of this package in a data directory. The start of the management cluster prepares them; `slipway
// encryption rotate` replaces the key.
type Files struct{ Dir datadir.Dir }

func (f Files) keys() string   { return filepath.Join(f.Dir.PKI(), "encryption-keys.json") }
func (f Files) lock() string   { return filepath.Join(f.Dir.PKI(), "encryption.lock") }
func (f Files) needed() string { return f.Dir.EncryptedWith() }

// Config returns the path of the encryption configuration for kube-apiserver.
func (f Files) Config() string { return filepath.Join(f.Dir.PKI(), "encryption.json") }

// locked calls do with a lock against changes by other processes.
func (f Files) locked(do func() error) error {
	if err := os.MkdirAll(f.Dir.PKI(), 0o700); err != nil {
		return err
	}
	l, other, held, err := datadir.Acquire(f.lock(), datadir.Holder{PID: os.Getpid()})
	if err != nil {
		return err
	}
	if held {
		return fault.New(fault.Conflict, reasonBusy, "process %d is changing the encryption keys; run the command again", other.PID)
	}
	defer func() { _ = l.Release() }()
	return do()
}

// readKeys returns the keys, or none if the file does not exist.
func (f Files) readKeys() ([]encryptionKey, error) {
	var file keyFile
	if _, err := datadir.ReadJSON(f.keys(), &file); err != nil {
		return nil, fault.New(fault.Invalid, reasonKeysInvalid, "%s cannot be used (%v): restore it from a backup", f.keys(), err).From(err)
	}
	for _, k := range file.Keys {
		if k.Name == "" || len(k.Secret) != keyLength {
			return nil, fault.New(fault.Invalid, reasonKeysInvalid, "%s cannot be used (a key has no name, or not %d bytes): restore it from a backup", f.keys(), keyLength)
		}
	}
	return file.Keys, nil
}

func (f Files) writeKeys(keys []encryptionKey) error {
	return datadir.WriteJSON(f.keys(), keyFile{keys})
}

func (f Files) readNeeded() ([]string, error) {
	var n neededKeys
	if _, err := datadir.ReadJSON(f.needed(), &n); err != nil {
		return nil, fault.New(fault.Invalid, reasonKeysInvalid, "%s cannot be read (%v): restore it from a backup", f.needed(), err).From(err)
	}
	return n.Keys, nil
}

// recordNeededKeys records that data may be encrypted with these keys, and with no others.
func (f Files) recordNeededKeys(keys []encryptionKey) error {
	n := neededKeys{Keys: []string{}}
	for _, k := range keys {
		n.Keys = append(n.Keys, k.fingerprint())
	}
	return datadir.WriteJSON(f.needed(), n)
}

// writeConfig writes the encryption configuration for kube-apiserver. If plain is true, Secrets are written
// as plain text, and the keys only decrypt.
func (f Files) writeConfig(keys []encryptionKey, plain bool) error {
	cipher := apiserverv1.ProviderConfiguration{Secretbox: &apiserverv1.SecretboxConfiguration{}}
	for _, k := range keys {
		cipher.Secretbox.Keys = append(cipher.Secretbox.Keys, apiserverv1.Key{Name: k.Name, Secret: base64.StdEncoding.EncodeToString(k.Secret)})
	}
	providers := []apiserverv1.ProviderConfiguration{cipher, {Identity: &apiserverv1.IdentityConfiguration{}}}
	if plain {
		slices.Reverse(providers)
	}
	file := apiserverv1.EncryptionConfiguration{
		Resources: []apiserverv1.ResourceConfiguration{{Resources: []string{"secrets"}, Providers: providers}},
	}
	file.APIVersion, file.Kind = apiserverv1.SchemeGroupVersion.String(), "EncryptionConfiguration"
	return datadir.WriteJSON(f.Config(), file)
}

// Prepare writes the encryption configuration before the kube-apiserver of the management cluster starts. It returns
// false if Secrets are plain text and have never been encrypted, so that no configuration is needed. Package
// controlplane calls it.
func (f Files) Prepare(plain bool, now time.Time) (used bool, err error) {
	err = f.locked(func() error {
		keys, err := f.readKeys()
		if err != nil {
			return err
		}
		wanted, err := f.readNeeded()
		if err != nil {
			return err
		}
		for _, fingerprint := range wanted {
			if !slices.ContainsFunc(keys, func(k encryptionKey) bool { return k.fingerprint() == fingerprint }) {
				return fault.New(fault.Invalid, reasonKeyMissing,
					"the Secrets of the management cluster are encrypted with a key that is not in %s: restore that file from a backup, nothing is started without it", f.keys())
			}
		}
		if len(keys) == 0 && plain {
			return nil
		}
		used = true
		if len(keys) == 0 {
			keys = []encryptionKey{newKey(now, nil)}
			if err := f.writeKeys(keys); err != nil {
				return err
			}
		}
		if err := f.recordNeededKeys(keys); err != nil {
			return err
		}
		return f.writeConfig(keys, plain)
	})
	return used, err
}

// Rotate adds a new key at the front and returns its name. The [Rewriter] of a running management cluster detects it.
func (f Files) Rotate(now time.Time) (name string, err error) {
	err = f.locked(func() error {
		keys, err := f.readKeys()
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			return fault.New(fault.Invalid, reasonKeyMissing, "the Secrets of the management cluster in %s are not encrypted: there is no key to replace", f.Dir)
		}
		key := newKey(now, keys)
		name = key.Name
		return f.writeKeys(append([]encryptionKey{key}, keys...))
	})
	return name, err
}

// Status is the state of the keys. `slipway status` shows it.
type Status struct {
	// Key is the name of the key that encrypts. It is empty if there is none.
	Key string
	// Others is the number of further keys that are needed until the data has been rewritten.
	Others int
}

// Status reads the state of the keys, for `slipway status` and `slipway encryption rotate`.
func (f Files) Status() (Status, error) {
	keys, err := f.readKeys()
	if err != nil || len(keys) == 0 {
		return Status{}, err
	}
	return Status{Key: keys[0].Name, Others: len(keys) - 1}, nil
}

// newKey returns a random key with a unique name.
func newKey(now time.Time, others []encryptionKey) encryptionKey {
	k := encryptionKey{Name: now.UTC().Format("key-20060102-150405"), Secret: make([]byte, keyLength)}
	for slices.ContainsFunc(others, func(o encryptionKey) bool { return o.Name == k.Name }) {
		k.Name += "x"
	}
	_, _ = rand.Read(k.Secret)
	return k
}
