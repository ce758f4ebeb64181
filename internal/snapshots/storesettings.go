package snapshots

import (
	"context"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
)

// Keys of the credentials Secret of a store, and of the Secret with an age identity. Users create these Secrets, so the
// keys must not change.
const (
	accessKeyID     = "accessKeyID"
	secretAccessKey = "secretAccessKey"
	// IdentityKey is the key of the age identities; `slipway move` reads it as well.
	IdentityKey = "identity"
)

// StoreSettings configures the stores that EtcdSnapshotPolicies may use. The manager fills it in, and the controllers
// that take or restore snapshots open stores only through it ([StoreSettings.Open]), because it enforces the operator's
// configuration.
type StoreSettings struct {
	// Root is the snapshot folder in the data directory, or empty if this manager has no data directory.
	Root string
	// Policy is the operator's configuration.
	Policy policy.Configuration
	// Secrets reads the Secrets of namespaces.
	Secrets client.Reader
}

// Denied returns the reason why the destination of a policy must not be used, or the empty string if it is allowed. The
// EtcdSnapshotPolicy controller reports it in a condition, and [StoreSettings.Open] fails with it.
func (s StoreSettings) Denied(p *hostedv1.EtcdSnapshotPolicy) string {
	switch to := p.Spec.Destination; {
	case to.S3 != nil:
		return s.Policy.DeniedSnapshotEndpoint(to.S3.Endpoint)
	case to.Folder != nil && to.Folder.Path != "":
		return s.Policy.DeniedSnapshotFolder(p.Namespace, to.Folder.Path)
	case to.Folder != nil && s.Root == "":
		return "The data of this manager is lost with its Pod: use an S3-compatible store in spec.destination, or a folder that the operator allows in snapshots.folders"
	case to.Folder == nil:
		return "The policy has no destination: set spec.destination.folder or spec.destination.s3"
	}
	return ""
}

// Open opens the store of a policy. The EtcdSnapshotPolicy controller calls it, and [Retriever.Find] for a restore.
func (s StoreSettings) Open(ctx context.Context, p *hostedv1.EtcdSnapshotPolicy) (Store, error) {
	if why := s.Denied(p); why != "" {
		return nil, fault.New(fault.Invalid, "DeniedByPolicy", "%s", why)
	}
	if folder := p.Spec.Destination.Folder; folder != nil {
		path := folder.Path
		if path == "" {
			path = s.Root
		}
		return namespaceStore{newFolder(filepath.Join(path, p.Namespace), s.Policy.Snapshots.NamespaceMiB<<20), p.Namespace}, nil
	}
	s3 := p.Spec.Destination.S3
	secret, err := s.secret(ctx, client.ObjectKey{Namespace: p.Namespace, Name: s3.CredentialsSecretName}, "spec.destination.s3.credentialsSecretName")
	if err != nil {
		return nil, err
	}
	return newS3(s3Config{
		Endpoint: s3.Endpoint, Insecure: s3.Insecure != nil && *s3.Insecure, CA: []byte(s3.CertificateAuthority), Bucket: s3.Bucket, Prefix: s3.Prefix, Region: s3.Region,
		AccessKeyID: string(secret.Data[accessKeyID]), SecretAccessKey: string(secret.Data[secretAccessKey]),
	})
}

// ReadIdentity reads age identities from a Secret. It returns nil if no name is given. [Retriever.Find] calls it.
func (s StoreSettings) ReadIdentity(ctx context.Context, key client.ObjectKey) ([]byte, error) {
	if key.Name == "" {
		return nil, nil
	}
	secret, err := s.secret(ctx, key, "identitySecret of the annotation")
	if err != nil {
		return nil, err
	}
	return secret.Data[IdentityKey], nil
}

// secret reads a Secret. The field that contains its name is for the message.
func (s StoreSettings) secret(ctx context.Context, key client.ObjectKey, where string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := s.Secrets.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, fault.New(fault.Invalid, "SecretMissing", "Secret %s, which %s names, does not exist: create it, or name another", key.Name, where)
	}
	return secret, err
}
