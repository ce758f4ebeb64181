// Package retrieval finds the snapshot that a request names, for what restores it.
//
// Does: reads the EtcdSnapshotPolicy that is named, in the namespace of the Cluster, opens its store, and reads the manifest of the
// snapshot and the identity that decrypts it. Only snapshots of a Cluster of that name are found, and of another UID only where the
// request allows it.
//
// Never: restores a snapshot, or opens its database.
//
// Read first: [Source.Find].
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

// Source is where snapshots are looked for.
type Source struct {
	// Client reads EtcdSnapshotPolicies.
	Client client.Reader
	// Stores are where snapshots may be.
	Stores destination.Settings
}

// Wanted is what a request names.
type Wanted struct {
	// Policy is the EtcdSnapshotPolicy whose store has the snapshot, Snapshot its name.
	Policy, Snapshot string
	// IdentitySecret is the name of a Secret with an identity of age, where the snapshot is encrypted.
	IdentitySecret string
	// OtherCluster allows a snapshot of a Cluster of the same name that had another UID.
	OtherCluster bool
}

// Found is a snapshot that can be read.
type Found struct {
	snapshots.Manifest
	from     store.Store
	identity []byte
}

// Find finds the snapshot of a Cluster.
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

// Fetch writes the snapshot to a file of this host, decrypted and checked. If it fails there is no such file.
func (f Found) Fetch(ctx context.Context, file string) error {
	return snapshots.Fetch(ctx, f.from, f.Manifest, file, f.identity)
}

// Copy writes the snapshot, decrypted, and checks it: what was written counts only without an error.
func (f Found) Copy(ctx context.Context, to io.Writer) error {
	return snapshots.Copy(ctx, f.from, f.Manifest, to, f.identity)
}
