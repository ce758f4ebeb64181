package pki

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
)

// Folder stores the certificates and keys of a management or workload cluster as NAME.crt and NAME.key. Package
// controlplane calls Authority, Leaf and SigningKey before the components start, and then every hour.
type Folder struct {
	Path string
	Now  func() time.Time // clock
}

// Cert returns the path of a certificate.
func (f Folder) Cert(name string) string { return filepath.Join(f.Path, name+".crt") }

// Key returns the path of a private key.
func (f Folder) Key(name string) string { return filepath.Join(f.Path, name+".key") }

// Authority returns the CA with this name and creates it if it is missing. In the last tenth of its lifetime,
// the certificate is renewed with the same key and name, so that issued leaf certificates remain valid.
func (f Folder) Authority(name string, a Authority) (Pair, error) {
	pair, err := f.load(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		pair, err = NewAuthority(a, f.Now())
	case err != nil:
		return Pair{}, fmt.Errorf("authority %s: %w; restore the two files from a backup", f.Cert(name), err)
	case f.Now().Before(renewAt(pair, 0.9)):
		return pair, nil
	default:
		a.Name = pair.Cert.Subject.CommonName
		pair, err = selfSign(a, pair.key, f.Now())
	}
	if err != nil {
		return Pair{}, err
	}
	return pair, f.Save(name, pair)
}

// Leaf ensures that there is a leaf certificate with this name that ca issued for l and that has more than a
// third of its lifetime left. changed reports whether files were written. After a crash between the writes of
// the two files, they do not match and are reissued. Package controlplane calls it periodically.
func (f Folder) Leaf(name string, ca Pair, l Leaf) (pair Pair, changed bool, err error) {
	pair, err = f.load(name)
	if err == nil && !NeedsReissue(pair, ca, l, f.Now()) {
		return pair, false, nil
	}
	pair, err = ca.Issue(l, f.Now())
	if err != nil {
		return Pair{}, false, err
	}
	return pair, true, f.Save(name, pair)
}

// SigningKey ensures that there is a service account key pair in NAME.key and NAME.pub. Package controlplane calls it.
func (f Folder) SigningKey(name string, a Algorithm) error {
	private, err := os.ReadFile(f.Key(name))
	if errors.Is(err, os.ErrNotExist) {
		_, private, err = SigningKey(a)
	}
	if err != nil {
		return err
	}
	public, err := publicKey(private)
	if err != nil {
		return fmt.Errorf("signing key %s: %w", f.Key(name), err)
	}
	if _, err := datadir.WriteFile(f.Key(name), private, 0o600); err != nil {
		return err
	}
	_, err = datadir.WriteFile(filepath.Join(f.Path, name+".pub"), public, 0o644)
	return err
}

// Save writes a pair, the key first.
func (f Folder) Save(name string, p Pair) error {
	if _, err := datadir.WriteFile(f.Key(name), p.KeyPEM, 0o600); err != nil {
		return err
	}
	_, err := datadir.WriteFile(f.Cert(name), p.CertPEM, 0o644)
	return err
}

// load also restores the mode of the key file.
func (f Folder) load(name string) (Pair, error) {
	cert, err := os.ReadFile(f.Cert(name))
	if err != nil {
		return Pair{}, err
	}
	key, err := os.ReadFile(f.Key(name))
	if err != nil {
		return Pair{}, err
	}
	if err := os.Chmod(f.Key(name), 0o600); err != nil {
		return Pair{}, err
	}
	return ParsePair(cert, key)
}
