package snapshots

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"time"

	"filippo.io/age"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Limits of one snapshot.
const (
	// maxBytes is the maximum size of a snapshot. It equals the maximum database size that etcd recommends.
	maxBytes = 8 << 30
	// Timeout limits taking or fetching a snapshot. The LocalMachine controller applies it when it fetches one.
	Timeout = 20 * time.Minute
)

// Source is the etcd of a cluster. Package internal/hosted/snapshots implements it for hosted and for kubeadm control
// planes.
type Source interface {
	// ReadState returns the present state of the etcd cluster.
	ReadState(ctx context.Context) (EtcdState, error)
	// Snapshot returns a snapshot as a stream that ends with the checksum of etcd.
	Snapshot(ctx context.Context) (io.ReadCloser, error)
}

// TakeOptions is a snapshot to take. The EtcdSnapshotPolicy controller fills it in.
type TakeOptions struct {
	Cluster Cluster
	Name    string
	Now     time.Time
	// Recipients are the age recipients that can decrypt the snapshot. It is not encrypted if there are none.
	Recipients []string
}

// Take takes a snapshot and stores it, and then its manifest. A background job of the EtcdSnapshotPolicy controller
// calls it. The manifest must be written last, because it marks the snapshot as complete.
func Take(ctx context.Context, from Source, to Store, order TakeOptions) (Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	recipients, err := ParseRecipients(order.Recipients)
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{Format: format, Name: order.Name, Cluster: order.Cluster, Taken: order.Now.UTC(), Encrypted: len(recipients) > 0}
	if m.EtcdState, err = from.ReadState(ctx); err != nil {
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
	limit := int64(maxBytes)
	if m.Encrypted {
		limit += maxBytes / 1024 // encryption adds 16 bytes per 64 KiB and a header
	}
	if err := to.Write(ctx, m.file(), content, limit); err != nil {
		return m, fmt.Errorf("storing snapshot %s: %w", m.Name, err)
	}
	m.Bytes, m.SHA256 = read.bytes, hex.EncodeToString(read.sum.Sum(nil))
	if m.Bytes == 0 {
		_ = to.Delete(ctx, m.file())
		return m, fault.New(fault.Unreachable, reasonDamaged, "The etcd of Cluster %s has sent an empty snapshot", order.Cluster.Name)
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

// hashingReader counts and hashes the bytes read. [Take] and fetchSnapshot compute the checksum in the manifest with
// it.
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

// ParseRecipients parses age recipients (spec.encryption.recipients of an EtcdSnapshotPolicy). [Take] and the webhook
// of EtcdSnapshotPolicies call it.
func ParseRecipients(texts []string) ([]age.Recipient, error) {
	var out []age.Recipient
	for _, text := range texts {
		r, err := age.ParseX25519Recipient(text)
		if err != nil {
			return nil, fault.New(fault.Invalid, "RecipientInvalid", "%q is not an age recipient: recipients begin with age1 and are printed by age-keygen", text).From(err)
		}
		out = append(out, r)
	}
	return out, nil
}
