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
	"github.com/slipwayhq/slipway/internal/snapshots/store"
	"github.com/slipwayhq/slipway/internal/version"
)

const (
	// format is the version of manifests.
	format = 1
	// maxManifest bounds a manifest, in bytes.
	maxManifest = 64 << 10
	// timeForm is how names tell the time.
	timeForm = "20060102T150405Z"

	plainExtension, encryptedExtension, manifestExtension = ".db", ".db.age", ".json"
)

// Reasons of faults about snapshots.
const (
	// ReasonDamaged says that a snapshot is not what its manifest says.
	ReasonDamaged = "SnapshotDamaged"
	// ReasonIdentity says that a snapshot cannot be decrypted with the identities that are there.
	ReasonIdentity = "SnapshotIdentityMissing"
)

// Cluster is whose etcd a snapshot is of.
type Cluster struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// folder is where its snapshots are in a store.
func (c Cluster) folder() string { return path.Join(c.Namespace, c.Name) }

// Facts are what is known of an etcd cluster when its snapshot is taken.
type Facts struct {
	// Revision of etcd that the snapshot has, or a later one.
	Revision int64 `json:"revision"`
	// Etcd is its version.
	Etcd string `json:"etcd,omitempty"`
	// Kubernetes is the version that wrote the data.
	Kubernetes string `json:"kubernetes,omitempty"`
	// EncryptionKeys stands for the keys that objects in it are encrypted with; empty: none is.
	EncryptionKeys string `json:"encryptionKeys,omitempty"`
}

// Manifest says what a snapshot is.
type Manifest struct {
	Format  int       `json:"format"`
	Name    string    `json:"name"`
	Cluster Cluster   `json:"cluster"`
	Taken   time.Time `json:"taken"`
	Facts
	// SHA256 and Bytes are of the snapshot as etcd gave it.
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	// Encrypted tells that it is stored encrypted with age.
	Encrypted bool `json:"encrypted,omitempty"`
}

// file is the name of the snapshot in a store.
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

// Name returns the name of the snapshot of a cluster at a time: the same for the same second.
func Name(cluster string, at time.Time) string {
	return cluster + "-" + at.UTC().Format(timeForm)
}

var named = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)-[0-9]{8}T[0-9]{6}Z$`)

// ParseName returns the cluster and the time in the name of a snapshot; false: it is none.
func ParseName(name string) (cluster string, at time.Time, ok bool) {
	if !named.MatchString(name) || len(name) > 253 {
		return "", time.Time{}, false
	}
	cut := strings.LastIndex(name, "-")
	at, err := time.Parse(timeForm, name[cut+1:])
	return name[:cut], at, err == nil
}

// List returns the snapshots that a store has of a cluster of this name, whatever its UID was, the oldest first. Manifests that cannot be
// read, and those without a snapshot, are left out.
func List(ctx context.Context, from store.Store, c Cluster) ([]Manifest, error) {
	files, err := from.List(ctx, c.folder())
	if err != nil {
		return nil, fmt.Errorf("listing the snapshots of Cluster %s: %w", c.Name, err)
	}
	there := map[string]bool{}
	for _, f := range files {
		there[f.Name] = true
	}
	var out []Manifest
	for _, f := range files {
		name, isManifest := strings.CutSuffix(path.Base(f.Name), manifestExtension)
		if !isManifest || f.Bytes > maxManifest || path.Dir(f.Name) != c.folder() {
			continue
		}
		m, err := Read(ctx, from, c, name)
		switch {
		case fault.As(err) != nil && fault.As(err).Reason == ReasonDamaged, fault.KindOf(err) == fault.Gone && err != nil:
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

// Read reads the manifest of a snapshot of a cluster by name.
func Read(ctx context.Context, from store.Store, c Cluster, name string) (Manifest, error) {
	if of, _, ok := ParseName(name); !ok || of != c.Name {
		return Manifest{}, fault.New(fault.Invalid, ReasonDamaged, "%q is not the name of a snapshot of Cluster %s: such names look like %s", name, c.Name, Name(c.Name, time.Unix(0, 0)))
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
		return Manifest{}, fault.New(fault.Invalid, ReasonDamaged, "The manifest of snapshot %s is damaged: use another snapshot", name)
	case m.Format != format:
		return Manifest{}, fault.New(fault.Invalid, ReasonDamaged, "The manifest of snapshot %s has format %d, and this release of slipway reads format %d", name, m.Format, format)
	}
	return m, nil
}

// isPlausible reports whether a manifest says what one of a snapshot can say. Others may write to the store, and the status of an
// EtcdSnapshotPolicy shows what it says: one value that the API refuses there would keep all of that status from being written.
func (m Manifest) isPlausible() bool {
	_, err := hex.DecodeString(m.SHA256)
	year := m.Taken.UTC().Year()
	return err == nil && len(m.SHA256) == 2*sha256.Size && m.Bytes > 0 && m.Revision >= 0 &&
		!m.Taken.IsZero() && year >= 1 && year <= 9999 && (m.Kubernetes == "" || version.IsVersion(m.Kubernetes))
}

// Remove removes a snapshot: first its manifest, so that one that is half gone is none.
func Remove(ctx context.Context, from store.Store, m Manifest) error {
	for _, file := range []string{manifestFile(m.Cluster, m.Name), m.file()} {
		if err := from.Delete(ctx, file); err != nil {
			return fmt.Errorf("removing snapshot %s: %w", m.Name, err)
		}
	}
	return nil
}

// Tidy removes what was left of snapshots of a cluster that were interrupted before this time.
func Tidy(ctx context.Context, from store.Store, c Cluster, before time.Time) error {
	if err := from.Tidy(ctx, c.folder(), before); err != nil {
		return fmt.Errorf("removing what is left of interrupted snapshots: %w", err)
	}
	files, err := from.List(ctx, c.folder())
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, f := range files {
		there[f.Name] = true
	}
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.Name), ".age"), plainExtension)
		if _, _, ok := ParseName(name); !ok || there[manifestFile(c, name)] || !f.Modified.Before(before) {
			continue
		}
		if err := from.Delete(ctx, f.Name); err != nil {
			return fmt.Errorf("removing what is left of interrupted snapshots: %w", err)
		}
	}
	return nil
}
