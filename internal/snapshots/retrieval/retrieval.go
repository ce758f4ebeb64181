// Package retrieval finds the snapshot for a restore request. It reads the EtcdSnapshotPolicy in the namespace of the
// Cluster, opens its store, and reads the snapshot's manifest and the identity that decrypts it. A snapshot is only
// used if it is from a Cluster of the same name. If the UID differs, the request must allow it. The main function is
// [Source.Find].
package retrieval

import (
	"context"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/snapshots"
	"github.com/slipwayhq/slipway/internal/snapshots/destination"
	"github.com/slipwayhq/slipway/internal/snapshots/store"
)

// Source finds snapshots.
type Source struct {
	// Client reads EtcdSnapshotPolicies.
	Client client.Reader
	// Stores opens the stores of snapshots.
	Stores destination.Settings
}

// Wanted identifies the requested snapshot.
type Wanted struct {
	// Policy is the EtcdSnapshotPolicy whose store has the snapshot. Snapshot is the name of the snapshot.
	Policy, Snapshot string
	// IdentitySecret is the name of a Secret with an age identity that decrypts the snapshot, if it is encrypted.
	IdentitySecret string
	// OtherCluster allows a snapshot of a Cluster with the same name and another UID.
	OtherCluster bool
}

// Found is a readable snapshot.
type Found struct {
	snapshots.Manifest
	from     store.Store
	identity []byte
}

// Find returns the snapshot of a Cluster.
func (s Source) Find(ctx context.Context, of snapshots.Cluster, want Wanted) (Found, error) {
	policy := &hostedv1.EtcdSnapshotPolicy{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: want.Policy}, policy)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return Found{}, fault.New(fault.Invalid, "SnapshotPolicyMissing", "EtcdSnapshotPolicy %s does not exist: name one whose store has the snapshot", want.Policy)
	}
	if err != nil {
		return Found{}, err
	}
	found := Found{}
	if found.from, err = s.Stores.Open(ctx, policy); err != nil {
		return Found{}, err
	}
	found.Manifest, err = snapshots.Read(ctx, found.from, of, want.Snapshot)
	if fault.KindOf(err) == fault.Gone {
		return Found{}, fault.New(fault.Invalid, "SnapshotMissing", "The store of EtcdSnapshotPolicy %s has no snapshot %s: its status lists the newest that it has", want.Policy, want.Snapshot).From(err)
	}
	if err != nil {
		return Found{}, err
	}
	if found.Cluster.UID != of.UID && !want.OtherCluster {
		return Found{}, fault.New(fault.Invalid, "SnapshotOfOtherCluster", "Snapshot %s is of a Cluster %s with another UID: its tokens and certificates may not be those of this one; otherCluster in the annotation allows it all the same", found.Name, of.Name)
	}
	found.identity, err = s.Stores.ReadIdentity(ctx, client.ObjectKey{Namespace: of.Namespace, Name: want.IdentitySecret})
	return found, err
}

// Fetch writes the decrypted and verified snapshot to a file of this host. The file does not exist after an error.
func (f Found) Fetch(ctx context.Context, file string) error {
	return snapshots.Fetch(ctx, f.from, f.Manifest, file, f.identity)
}

// Copy writes the decrypted snapshot and verifies it. After an error, discard the written data.
func (f Found) Copy(ctx context.Context, to io.Writer) error {
	return snapshots.Copy(ctx, f.from, f.Manifest, to, f.identity)
}
