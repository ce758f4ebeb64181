package snapshots

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"filippo.io/age"

	"github.com/slipwayhq/slipway/internal/fault"
)

// fetchSnapshot writes a snapshot to a file of this host and verifies it, for a restore ([RetrievedSnapshot.Fetch]). An
// encrypted snapshot is decrypted with the age identities. The file does not exist after an error.
func fetchSnapshot(ctx context.Context, from Store, m Manifest, to string, identities []byte) (err error) {
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("writing snapshot %s: %w", m.Name, err)
	}
	defer func() {
		err = errors.Join(err, out.Close())
		if err != nil {
			_ = os.Remove(to)
		}
	}()
	if err := copyVerified(ctx, from, m, out, identities); err != nil {
		return err
	}
	return out.Sync()
}

// copyVerified writes a snapshot and verifies it. An encrypted snapshot is decrypted with the age identities. After an
// error, discard the written data. The LocalMachine controller streams a snapshot to a node with it
// ([RetrievedSnapshot.Copy]).
func copyVerified(ctx context.Context, from Store, m Manifest, to io.Writer, identities []byte) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	stored, err := from.Read(ctx, m.file())
	if err != nil {
		return fmt.Errorf("reading snapshot %s: %w", m.Name, err)
	}
	defer func() { _ = stored.Close() }()
	content, err := decrypted(stored, m, identities)
	if err != nil {
		return err
	}
	read := &hashingReader{from: io.LimitReader(content, min(m.Bytes, maxBytes)+1), sum: sha256.New()}
	if _, err := io.Copy(to, contextual{ctx, read}); err != nil {
		return fmt.Errorf("reading snapshot %s: %w", m.Name, err)
	}
	if read.bytes != m.Bytes || hex.EncodeToString(read.sum.Sum(nil)) != m.SHA256 {
		return fault.New(fault.Invalid, reasonDamaged, "Snapshot %s does not match its manifest: use another snapshot", m.Name)
	}
	return nil
}

// contextual stops reading when its context ends.
type contextual struct {
	ctx  context.Context
	from io.Reader
}

func (c contextual) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.from.Read(p)
}

// decrypted returns the content of a stored snapshot. Its errors must not contain text of the identity.
func decrypted(stored io.Reader, m Manifest, identities []byte) (io.Reader, error) {
	if !m.Encrypted {
		return stored, nil
	}
	if len(identities) == 0 {
		return nil, fault.New(fault.Invalid, reasonIdentity, "Snapshot %s is encrypted: name a Secret with an identity of age that can read it in identitySecret of the annotation", m.Name)
	}
	keys, err := age.ParseIdentities(bytes.NewReader(identities))
	if err != nil { // do not wrap the error, because its text may contain a part of the key
		return nil, fault.New(fault.Invalid, reasonIdentity, "The identity Secret contains no age identity: store the output of age-keygen under its key \"identity\"")
	}
	r, err := age.Decrypt(stored, keys...)
	var none *age.NoIdentityMatchError
	switch {
	case errors.As(err, &none):
		return nil, fault.New(fault.Invalid, reasonIdentity, "Snapshot %s cannot be decrypted with the identity in the Secret", m.Name).From(err)
	case err != nil:
		return nil, fault.New(fault.Invalid, reasonDamaged, "Snapshot %s cannot be decrypted: use another snapshot", m.Name).From(err)
	}
	return r, nil
}
