package snapshots

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

const (
	// format is the version of the manifest format.
	format = 1
	// maxManifest limits the size of a manifest, in bytes.
	maxManifest = 64 << 10
	// timeForm is the time layout in snapshot names.
	timeForm = "20060102T150405Z"

	plainExtension, encryptedExtension, manifestExtension = ".db", ".db.age", ".json"
)

// Reasons of faults about snapshots.
const (
	// reasonDamaged means that a snapshot or its manifest is damaged.
	reasonDamaged = "SnapshotDamaged"
	// reasonIdentity means that none of the provided identities can decrypt the snapshot.
	reasonIdentity = "SnapshotIdentityMissing"
)

// Cluster identifies the cluster of a snapshot. [Retriever.Find] compares the UID with the UID of the Cluster that is
// restored.
type Cluster struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// folder returns the folder of the cluster's snapshots in a store.
func (c Cluster) folder() string { return path.Join(c.Namespace, c.Name) }

// EtcdState is the state of an etcd cluster when its snapshot is taken. [Source] reports it, and [Take] writes it into
// the manifest.
type EtcdState struct {
	// Revision is the minimum etcd revision of the snapshot.
	Revision int64 `json:"revision"`
	// Etcd is the version of etcd.
	Etcd string `json:"etcd,omitempty"`
	// Kubernetes is the version of Kubernetes that wrote the data.
	Kubernetes string `json:"kubernetes,omitempty"`
	// EncryptionKeys identifies the keys for encryption at rest, or is empty if objects are not encrypted.
	EncryptionKeys string `json:"encryptionKeys,omitempty"`
}

// Manifest describes a snapshot. It is stored as JSON next to the snapshot, and its fields must stay readable, because
// stores contain snapshots of earlier releases; an incompatible change needs another format number. The
// EtcdSnapshotPolicy controller lists manifests, and a restore checks the snapshot against its manifest.
type Manifest struct {
	Format  int       `json:"format"`
	Name    string    `json:"name"`
	Cluster Cluster   `json:"cluster"`
	Taken   time.Time `json:"taken"`
	EtcdState
	// SHA256 and Bytes refer to the unencrypted snapshot.
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	// Encrypted means that the stored snapshot is encrypted with age.
	Encrypted bool `json:"encrypted,omitempty"`
}

// file returns the path of the snapshot in a store.
func (m Manifest) file() string {
	extension := plainExtension
	if m.Encrypted {
		extension = encryptedExtension
	}
	return path.Join(m.Cluster.folder(), m.Name+extension)
}

func manifestFile(c Cluster, name string) string {
	return path.Join(c.folder(), name+manifestExtension)
}

// Name returns the name of a snapshot of the cluster at the given time, with a precision of one second. The name is
// part of the format of stores.
func Name(cluster string, at time.Time) string {
	return cluster + "-" + at.UTC().Format(timeForm)
}

var namePattern = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)-[0-9]{8}T[0-9]{6}Z$`)

// ParseName returns the cluster and the time in a snapshot's name, or false if the name is invalid. A restore, the
// EtcdSnapshotPolicy controller and `slipway move` parse the names of snapshots with it.
func ParseName(name string) (cluster string, at time.Time, ok bool) {
	if !namePattern.MatchString(name) || len(name) > 253 {
		return "", time.Time{}, false
	}
	cut := strings.LastIndex(name, "-")
	at, err := time.Parse(timeForm, name[cut+1:])
	return name[:cut], at, err == nil
}

// List returns the stored snapshots of clusters with this namespace and name, regardless of their UID, oldest first.
// Unreadable manifests and manifests without a snapshot are skipped. The EtcdSnapshotPolicy controller calls it when it
// needs the content of a store, for its status and for retention.
func List(ctx context.Context, from Store, c Cluster) ([]Manifest, error) {
	files, err := from.List(ctx, c.folder())
	if err != nil {
		return nil, fmt.Errorf("listing the snapshots of Cluster %s: %w", c.Name, err)
	}
	there := namesOf(files)
	var out []Manifest
	for _, f := range files {
		name, isManifest := strings.CutSuffix(path.Base(f.Name), manifestExtension)
		if !isManifest || f.Bytes > maxManifest || path.Dir(f.Name) != c.folder() {
			continue
		}
		m, err := read(ctx, from, c, name)
		switch {
		case fault.As(err) != nil && fault.As(err).Reason == reasonDamaged, fault.KindOf(err) == fault.Gone && err != nil:
			continue
		case err != nil:
			return nil, err
		case there[m.file()]:
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b Manifest) int {
		return cmp.Or(a.Taken.Compare(b.Taken), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}

func namesOf(files []File) map[string]bool {
	names := map[string]bool{}
	for _, f := range files {
		names[f.Name] = true
	}
	return names
}

// read reads the manifest of a snapshot by name.
func read(ctx context.Context, from Store, c Cluster, name string) (Manifest, error) {
	if of, _, ok := ParseName(name); !ok || of != c.Name {
		return Manifest{}, fault.New(fault.Invalid, reasonDamaged, "%q is not the name of a snapshot of Cluster %s: such names look like %s", name, c.Name, Name(c.Name, time.Unix(0, 0)))
	}
	r, err := from.Read(ctx, manifestFile(c, name))
	if err != nil {
		return Manifest{}, fmt.Errorf("reading the manifest of snapshot %s: %w", name, err)
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(io.LimitReader(r, maxManifest))
	if err != nil {
		return Manifest{}, fmt.Errorf("reading the manifest of snapshot %s: %w", name, err)
	}
	var m Manifest
	err = json.Unmarshal(text, &m)
	switch {
	case err != nil, m.Name != name, m.Cluster.Namespace != c.Namespace, m.Cluster.Name != c.Name, !m.isPlausible():
		return Manifest{}, fault.New(fault.Invalid, reasonDamaged, "The manifest of snapshot %s is damaged: use another snapshot", name)
	case m.Format != format:
		return Manifest{}, fault.New(fault.Invalid, reasonDamaged, "The manifest of snapshot %s has format %d, and this release of slipway reads format %d", name, m.Format, format)
	}
	return m, nil
}

// isPlausible reports whether the values of a manifest are valid. Other users may write to the store, and the status
// of an EtcdSnapshotPolicy contains these values. A single value that the API server rejects would fail the whole
// status update.
func (m Manifest) isPlausible() bool {
	_, err := hex.DecodeString(m.SHA256)
	year := m.Taken.UTC().Year()
	return err == nil && len(m.SHA256) == 2*sha256.Size && m.Bytes > 0 && m.Revision >= 0 &&
		!m.Taken.IsZero() && year >= 1 && year <= 9999 && (m.Kubernetes == "" || version.IsVersion(m.Kubernetes))
}

// Remove removes a snapshot. The manifest is removed first, so that a partially removed snapshot is ignored. The
// EtcdSnapshotPolicy controller calls it for expired snapshots.
func Remove(ctx context.Context, from Store, m Manifest) error {
	for _, file := range []string{manifestFile(m.Cluster, m.Name), m.file()} {
		if err := from.Delete(ctx, file); err != nil {
			return fmt.Errorf("removing snapshot %s: %w", m.Name, err)
		}
	}
	return nil
}

// Tidy removes the remains of snapshots of a cluster that were interrupted before the given time. The
// EtcdSnapshotPolicy controller calls it before it takes a snapshot.
func Tidy(ctx context.Context, from Store, c Cluster, before time.Time) error {
	if err := from.Tidy(ctx, c.folder(), before); err != nil {
		return fmt.Errorf("removing the remains of interrupted snapshots: %w", err)
	}
	files, err := from.List(ctx, c.folder())
	if err != nil {
		return err
	}
	there := namesOf(files)
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.Name), ".age"), plainExtension)
		if _, _, ok := ParseName(name); !ok || there[manifestFile(c, name)] || !f.Modified.Before(before) {
			continue
		}
		if err := from.Delete(ctx, f.Name); err != nil {
			return fmt.Errorf("removing the remains of interrupted snapshots: %w", err)
		}
	}
	return nil
}
