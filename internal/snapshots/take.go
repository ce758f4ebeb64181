package snapshots

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"time"

	"filippo.io/age"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/snapshots/store"
)

// Limits of one snapshot.
const (
	// maxBytes is the maximum size of a snapshot. It equals the maximum database size that etcd recommends.
	maxBytes = 8 << 30
	// Timeout limits taking or fetching a snapshot.
	Timeout = 20 * time.Minute
)

// Source is the etcd of a cluster.
type Source interface {
	// Facts returns the present state of the etcd cluster.
	Facts(ctx context.Context) (EtcdState, error)
	// Snapshot returns a snapshot as a stream that ends with the checksum of etcd.
	Snapshot(ctx context.Context) (io.ReadCloser, error)
}

// TakeOptions is a snapshot to take.
type TakeOptions struct {
	Cluster Cluster
	Name    string
	Now     time.Time
	// Recipients are the age recipients that can decrypt the snapshot. It is not encrypted if there are none.
	Recipients []string
}

// Take takes a snapshot and stores it.
func Take(ctx context.Context, from Source, to store.Store, order TakeOptions) (Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	recipients, err := ParseRecipients(order.Recipients)
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{Format: format, Name: order.Name, Cluster: order.Cluster, Taken: order.Now.UTC(), Encrypted: len(recipients) > 0}
	if m.EtcdState, err = from.Facts(ctx); err != nil {
		return m, fmt.Errorf("reading etcd of Cluster %s: %w", order.Cluster.Name, err)
	}
	stream, err := from.Snapshot(ctx)
	if err != nil {
		return m, fmt.Errorf("taking a snapshot of etcd of Cluster %s: %w", order.Cluster.Name, err)
	}
	defer func() { _ = stream.Close() }()
	read := &hashingReader{from: stream, sum: sha256.New()}
	content := io.Reader(read)
	if m.Encrypted {
		pipe := encrypted(read, recipients)
		defer func() { _ = pipe.Close() }() // stops the encryption if the store does not read to the end
		content = pipe
	}
	// Encryption adds 16 bytes per 64 KiB and a header.
	if err := to.Write(ctx, m.file(), content, maxBytes+maxBytes/1024); err != nil {
		return m, fmt.Errorf("storing snapshot %s: %w", m.Name, err)
	}
	m.Bytes, m.SHA256 = read.bytes, hex.EncodeToString(read.sum.Sum(nil))
	if m.Bytes == 0 {
		_ = to.Delete(ctx, m.file())
		return m, fault.New(fault.Unreachable, ReasonDamaged, "The etcd of Cluster %s has sent an empty snapshot", order.Cluster.Name)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, err
	}
	if err := to.Write(ctx, manifestFile(m.Cluster, m.Name), bytes.NewReader(append(text, '\n')), maxManifest); err != nil {
		return m, fmt.Errorf("storing the manifest of snapshot %s: %w", m.Name, err)
	}
	return m, nil
}

// hashingReader counts and hashes the bytes read.
type hashingReader struct {
	from  io.Reader
	sum   hash.Hash
	bytes int64
}

func (s *hashingReader) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.bytes += int64(n)
	s.sum.Write(p[:n]) // never fails
	return n, err
}

// encrypted returns an encrypting reader. Read errors are passed on, so that the snapshot is not stored in that case.
func encrypted(from io.Reader, to []age.Recipient) *io.PipeReader {
	r, w := io.Pipe()
	go func() {
		out, err := age.Encrypt(w, to...)
		if err == nil {
			if _, err = io.Copy(out, from); err == nil {
				err = out.Close()
			}
		}
		_ = w.CloseWithError(err)
	}()
	return r
}

// ParseRecipients parses age recipients.
func ParseRecipients(texts []string) ([]age.Recipient, error) {
	var out []age.Recipient
	for _, text := range texts {
		r, err := age.ParseX25519Recipient(text)
		if err != nil {
			return nil, fault.New(fault.Invalid, "RecipientInvalid", "%q is no recipient of age: those begin with age1 and are printed by age-keygen", text).From(err)
		}
		out = append(out, r)
	}
	return out, nil
}

// Fetch writes a snapshot to a file of this host and verifies it. An encrypted snapshot is decrypted with the age
// identities. The file does not exist after an error.
func Fetch(ctx context.Context, from store.Store, m Manifest, to string, identities []byte) (err error) {
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
	if err := Copy(ctx, from, m, out, identities); err != nil {
		return err
	}
	return out.Sync()
}

// Copy writes a snapshot and verifies it. An encrypted snapshot is decrypted with the age identities. After an error,
// discard the written data.
func Copy(ctx context.Context, from store.Store, m Manifest, to io.Writer, identities []byte) error {
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
		return fault.New(fault.Invalid, ReasonDamaged, "Snapshot %s is not what its manifest says: use another snapshot", m.Name)
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

func decrypted(stored io.Reader, m Manifest, identities []byte) (io.Reader, error) {
	if !m.Encrypted {
		return stored, nil
	}
	if len(identities) == 0 {
		return nil, fault.New(fault.Invalid, reasonIdentity, "Snapshot %s is encrypted: name a Secret with an identity of age that can read it in identitySecret of the annotation", m.Name)
	}
	keys, err := age.ParseIdentities(bytes.NewReader(identities))
	if err != nil { // do not wrap the error, because its text may contain a part of the key
		return nil, fault.New(fault.Invalid, reasonIdentity, "The Secret with the identity has none of age: its key \"identity\" holds what age-keygen writes")
	}
	r, err := age.Decrypt(stored, keys...)
	var none *age.NoIdentityMatchError
	switch {
	case errors.As(err, &none):
		return nil, fault.New(fault.Invalid, reasonIdentity, "Snapshot %s is encrypted for other identities than that of the Secret", m.Name).From(err)
	case err != nil:
		return nil, fault.New(fault.Invalid, ReasonDamaged, "Snapshot %s cannot be decrypted: use another snapshot", m.Name).From(err)
	}
	return r, nil
}
