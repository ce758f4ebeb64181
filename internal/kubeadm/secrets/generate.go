package secrets

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
)

// KeyOptions configures how private keys and certificates are generated. KubeadmConfigs and KubeadmControlPlanes set it
// in their ClusterConfiguration ([KeyOptionsOf]).
type KeyOptions struct {
	// Algorithm defaults to ECDSA-P256.
	Algorithm pki.Algorithm
	// Authority and Leaf are the validity periods of CA and leaf certificates. They default to ten years and one
	// year.
	Authority, Leaf time.Duration
}

// KeyOptionsOf returns the key configuration from the ClusterConfiguration. The controllers of KubeadmControlPlanes and
// KubeadmConfigs call it before [Generate].
func KeyOptionsOf(config bootstrapv1.ClusterConfiguration) KeyOptions {
	const day = 24 * time.Hour
	return KeyOptions{
		Algorithm: pki.Algorithm(config.EncryptionAlgorithm),
		Authority: time.Duration(config.CACertificateValidityPeriodDays) * day,
		Leaf:      time.Duration(config.CertificateValidityPeriodDays) * day,
	}
}

// Generate returns the content of a new Secret for a CA or for the service account keys. The controllers of control
// planes and KubeadmConfigs call it for a Secret that does not exist, and `slipway rotate` calls it for a new CA. The
// names of the CAs are the same as in clusters of kubeadm. Secrets for other purposes cannot be generated.
func Generate(p Purpose, keys KeyOptions, now time.Time) (map[string][]byte, error) {
	if p == SA {
		public, private, err := pki.SigningKey(keys.Algorithm)
		return map[string][]byte{corev1.TLSCertKey: public, corev1.TLSPrivateKeyKey: private}, err
	}
	name, ok := map[Purpose]string{CA: "kubernetes", Etcd: "etcd-ca", Proxy: "front-proxy-ca"}[p]
	if !ok {
		return nil, fault.New(fault.Bug, "NotGenerated", "a Secret for %s is not generated", p)
	}
	pair, err := pki.NewAuthority(pki.Authority{Name: name, Algorithm: keys.Algorithm, Lifetime: keys.Authority}, now)
	return map[string][]byte{corev1.TLSCertKey: pair.CertPEM, corev1.TLSPrivateKeyKey: pair.KeyPEM}, err
}

// Owner is the controller owner of the Secrets: the control plane, or the KubeadmConfig of a cluster without a
// control plane object.
type Owner struct {
	// Ref is a controller reference.
	Ref metav1.OwnerReference
	// Replaces lists the kinds of other controllers whose Secrets the owner adopts. Secrets of a previous object with
	// the owner's kind and name are always adopted.
	Replaces []string
}

// NewSecret returns a Secret of the cluster with the given data. All three controllers of the package documentation
// create their Secrets with it.
func NewSecret(cluster client.ObjectKey, p Purpose, owner Owner, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: p.SecretName(cluster.Name),
			Labels:          map[string]string{clusterv1.ClusterNameLabel: cluster.Name},
			OwnerReferences: []metav1.OwnerReference{owner.Ref},
		},
		Type: clusterv1.ClusterSecretType, Data: data,
	}
}

// Manages reports whether the owner may change the Secret. Secrets provided by users are never changed. A managed
// Secret that has lost its controller reference is recognized by its type.
func (o Owner) Manages(secret *corev1.Secret) bool {
	controller := metav1.GetControllerOf(secret)
	if controller == nil {
		return secret.Type == clusterv1.ClusterSecretType
	}
	return o.ownsReference(*controller)
}

// NeedsOwner reports whether a Secret that the owner manages has no controller reference to the owner's current UID and
// API version. The controllers of KubeadmControlPlanes and HostedControlPlanes call it for each Secret that they
// manage.
func (o Owner) NeedsOwner(secret *corev1.Secret) bool {
	controller := metav1.GetControllerOf(secret)
	return o.Manages(secret) && (controller == nil || controller.UID != o.Ref.UID || controller.APIVersion != o.Ref.APIVersion)
}

// Adopt makes the owner the controller of the Secret. The controllers of KubeadmControlPlanes and HostedControlPlanes
// call it when they restore or replace a Secret.
func (o Owner) Adopt(secret client.Object) {
	others := slices.DeleteFunc(slices.Clone(secret.GetOwnerReferences()), o.ownsReference)
	secret.SetOwnerReferences(append(others, o.Ref))
}

// ownsReference reports whether the reference is to the owner, to a previous object with the same kind and name, or to
// a kind that the owner replaces.
func (o Owner) ownsReference(ref metav1.OwnerReference) bool {
	return ref.Kind == o.Ref.Kind && ref.Name == o.Ref.Name || slices.Contains(o.Replaces, ref.Kind)
}
