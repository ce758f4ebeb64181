package secrets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Purpose identifies a Secret of the cluster, which is named <cluster>-<purpose>. The names are the contract of Cluster
// API, and must not change because other controllers and users read the Secrets under these names; only Encryption is
// specific to Slipway.
type Purpose string

// The purposes of Secrets. EtcdClient is the client certificate of the API server for an external etcd. Encryption
// holds the keys for encryption at rest in etcd, and no certificates. A new purpose must also be added to
// [Purpose.IsKnown] and to credentials in package policy.
const (
	CA         Purpose = "ca"
	Etcd       Purpose = "etcd"
	Proxy      Purpose = "proxy"
	SA         Purpose = "sa"
	EtcdClient Purpose = "apiserver-etcd-client"
	Admin      Purpose = "kubeconfig"
	Encryption Purpose = "encryption"
)

// IsKnown reports whether p is one of the purposes above. Package clusterctl/move recognizes the Secrets of a Cluster
// by it.
func (p Purpose) IsKnown() bool {
	return slices.Contains([]Purpose{CA, Etcd, Proxy, SA, EtcdClient, Admin, Encryption}, p)
}

// SecretName returns the name of the Secret with this purpose.
func (p Purpose) SecretName(cluster string) string { return cluster + "-" + string(p) }

// Requirement is a Secret that a control plane needs.
type Requirement struct {
	Purpose Purpose
	// UserProvided means that the user provides the Secret; it is never generated.
	UserProvided bool
	// Keyless means that the certificate is sufficient without its private key.
	Keyless bool
	// SingleCertificate means that the certificate file must contain exactly one certificate, because the component
	// that signs with it does not accept more.
	SingleCertificate bool
}

// signingFile is the kube-controller-manager flag for the CA certificate file that it signs with.
const signingFile = "cluster-signing-cert-file"

// SignedByKubeadm returns the requirements of a control plane whose nodes kubeadm creates with this configuration.
// kube-controller-manager signs with the file of the cluster CA and does not start if the file contains two
// certificates. The limit does not apply if the flag selects another file, or if a patch may do so. The controllers of
// KubeadmControlPlanes and KubeadmConfigs call it.
func SignedByKubeadm(spec bootstrapv1.KubeadmConfigSpec) []Requirement {
	out := Required(spec.ClusterConfiguration)
	if spec.InitConfiguration.Patches.Directory != "" || spec.JoinConfiguration.Patches.Directory != "" ||
		slices.ContainsFunc(spec.ClusterConfiguration.ControllerManager.ExtraArgs, func(a bootstrapv1.Arg) bool { return a.Name == signingFile }) {
		return out
	}
	for i := range out {
		out[i].SingleCertificate = out[i].Purpose == CA
	}
	return out
}

// Required returns the Secrets that a control plane with this configuration needs, in the order of their creation.
// For an external etcd, the user provides the CA and the client certificate.
func Required(config bootstrapv1.ClusterConfiguration) []Requirement {
	if config.Etcd.External.IsDefined() {
		return []Requirement{{Purpose: CA}, {Purpose: Proxy}, {Purpose: SA},
			{Purpose: Etcd, UserProvided: true, Keyless: true}, {Purpose: EtcdClient, UserProvided: true}}
	}
	return []Requirement{{Purpose: CA}, {Purpose: Etcd}, {Purpose: Proxy}, {Purpose: SA}}
}

// Secrets maps purposes to the existing Secrets of a cluster. Missing Secrets have no entry.
type Secrets map[Purpose]*corev1.Secret

// Read reads the Secrets of a cluster concurrently, each from the first reader that has it. The controllers of control
// planes and KubeadmConfigs call it with the cache first and a reader of the API server second, because a cache that
// only holds labelled Secrets does not contain Secrets provided by users. Do not modify the returned Secrets, because a
// cache shares them.
func Read(ctx context.Context, cluster client.ObjectKey, purposes []Purpose, readers ...client.Reader) (Secrets, error) {
	secrets := make([]*corev1.Secret, len(purposes))
	reads, ctx := fault.NewGroup(ctx)
	for i, p := range purposes {
		reads.Go(func() (err error) {
			secrets[i], err = readSecret(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: p.SecretName(cluster.Name)}, readers)
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return nil, err
	}
	out := Secrets{}
	for i, p := range purposes {
		if secrets[i] != nil {
			out[p] = secrets[i]
		}
	}
	return out, nil
}

func readSecret(ctx context.Context, key client.ObjectKey, readers []client.Reader) (*corev1.Secret, error) {
	for _, from := range readers {
		secret := &corev1.Secret{}
		err := from.Get(ctx, key, secret)
		if err == nil {
			return secret, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading Secret %s: %w", key, err)
		}
	}
	return nil, nil
}

// Purposes returns the purposes of the requirements. The controllers of KubeadmControlPlanes and KubeadmConfigs call it
// before [Read].
func Purposes(required []Requirement) []Purpose {
	out := make([]Purpose, 0, len(required))
	for _, r := range required {
		out = append(out, r.Purpose)
	}
	return out
}

// Fingerprint identifies the certificates of a CA Secret, including their order, because the first one signs. It is
// empty if the Secret has no readable certificates. The HostedControlPlane controller reports it in status.authority,
// and `slipway rotate` compares it with the Secret.
func Fingerprint(secret *corev1.Secret) string {
	certs, err := pki.ReencodeCerts(secret.Data[corev1.TLSCertKey])
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(certs)
	return hex.EncodeToString(sum[:16])
}
