package snapshots

import (
	"context"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Retriever finds snapshots for restores. The HostedControlPlane controller fetches the snapshot into the directory of
// the control plane ([RetrievedSnapshot.Fetch]), and the LocalMachine controller copies it to a machine of a
// KubeadmControlPlane ([RetrievedSnapshot.Copy]).
type Retriever struct {
	// Client reads EtcdSnapshotPolicies.
	Client client.Reader
	// Stores opens the stores of snapshots.
	Stores StoreSettings
}

// RetrievalRequest identifies the requested snapshot. The HostedControlPlane and LocalMachine controllers fill it in
// from the annotation that requests a restore.
type RetrievalRequest struct {
	// Policy is the EtcdSnapshotPolicy whose store has the snapshot. Snapshot is the name of the snapshot.
	Policy, Snapshot string
	// IdentitySecret is the name of a Secret with an age identity that decrypts the snapshot, if it is encrypted.
	IdentitySecret string
	// OtherCluster allows a snapshot of a Cluster with the same name and another UID.
	OtherCluster bool
}

// RetrievedSnapshot is a readable snapshot.
type RetrievedSnapshot struct {
	Manifest
	from     Store
	identity []byte
}

// Find returns the snapshot of a Cluster. It only searches the store of a policy in the namespace of the Cluster, so
// that no tenant can restore the data of another one. The jobs that stage a snapshot for a restore call it.
func (s Retriever) Find(ctx context.Context, of Cluster, want RetrievalRequest) (RetrievedSnapshot, error) {
	policy := &hostedv1.EtcdSnapshotPolicy{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: want.Policy}, policy)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return RetrievedSnapshot{}, fault.New(fault.Invalid, "SnapshotPolicyMissing", "EtcdSnapshotPolicy %s does not exist: name one whose store has the snapshot", want.Policy)
	}
	if err != nil {
		return RetrievedSnapshot{}, err
	}
	found := RetrievedSnapshot{}
	if found.from, err = s.Stores.Open(ctx, policy); err != nil {
		return RetrievedSnapshot{}, err
	}
	found.Manifest, err = read(ctx, found.from, of, want.Snapshot)
	if fault.KindOf(err) == fault.Gone {
		return RetrievedSnapshot{}, fault.New(fault.Invalid, "SnapshotMissing", "The store of EtcdSnapshotPolicy %s has no snapshot %s: its status lists the newest that it has", want.Policy, want.Snapshot).From(err)
	}
	if err != nil {
		return RetrievedSnapshot{}, err
	}
	if found.Cluster.UID != of.UID && !want.OtherCluster {
		return RetrievedSnapshot{}, fault.New(fault.Invalid, "SnapshotOfOtherCluster", "Snapshot %s is of a Cluster %s with another UID: its tokens and certificates may not be those of this one; otherCluster in the annotation allows it all the same", found.Name, of.Name)
	}
	found.identity, err = s.Stores.ReadIdentity(ctx, client.ObjectKey{Namespace: of.Namespace, Name: want.IdentitySecret})
	return found, err
}

// Fetch writes the decrypted and verified snapshot to a file of this host. The file does not exist after an error. The
// HostedControlPlane controller calls it in a job.
func (f RetrievedSnapshot) Fetch(ctx context.Context, file string) error {
	return fetchSnapshot(ctx, f.from, f.Manifest, file, f.identity)
}

// Copy writes the decrypted snapshot and verifies it. After an error, discard the written data. The LocalMachine
// controller calls it in a job.
func (f RetrievedSnapshot) Copy(ctx context.Context, to io.Writer) error {
	return copyVerified(ctx, f.from, f.Manifest, to, f.identity)
}
