package authority

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/plane/pki"
)

// Purpose of a Secret of the cluster; the Secret is named <cluster>-<purpose>.
type Purpose string

// The purposes. EtcdClient is the certificate with which an API server calls an external etcd, Encryption are keys and no certificates:
// those with which a control plane encrypts what is in its etcd.
const (
	CA         Purpose = "ca"
	Etcd       Purpose = "etcd"
	Proxy      Purpose = "proxy"
	SA         Purpose = "sa"
	EtcdClient Purpose = "apiserver-etcd-client"
	Admin      Purpose = "kubeconfig"
	Encryption Purpose = "encryption"
)

// IsKnown reports whether it is one of the purposes.
func (p Purpose) IsKnown() bool {
	return slices.Contains([]Purpose{CA, Etcd, Proxy, SA, EtcdClient, Admin, Encryption}, p)
}

// SecretName is the name of the Secret with this purpose.
func (p Purpose) SecretName(cluster string) string { return cluster + "-" + string(p) }

// Requirement is a Secret that a control plane needs.
type Requirement struct {
	Purpose Purpose
	// Brought by a person: it is never generated.
	Brought bool
	// Keyless: the certificate alone is enough.
	Keyless bool
	// Single: a file with the certificate is signed with, and what signs accepts one certificate in it.
	Single bool
}

// signingFile is the flag of kube-controller-manager that names the file.
const signingFile = "cluster-signing-cert-file"

// SignedByKubeadm are the requirements of a control plane whose nodes kubeadm makes with this configuration: kube-controller-manager signs with
// the file of the cluster's CA and does not start with two certificates in it, unless its flag names another file, or a patch may do so.
func SignedByKubeadm(spec bootstrapv1.KubeadmConfigSpec) []Requirement {
	out := Required(spec.ClusterConfiguration)
	if spec.InitConfiguration.Patches.Directory != "" || spec.JoinConfiguration.Patches.Directory != "" ||
		slices.ContainsFunc(spec.ClusterConfiguration.ControllerManager.ExtraArgs, func(a bootstrapv1.Arg) bool { return a.Name == signingFile }) {
		return out
	}
	for i := range out {
		out[i].Single = out[i].Purpose == CA
	}
	return out
}

// Required are the Secrets that a control plane with this configuration needs, in the order in which they are
// created. The authority of an external etcd, and the certificate for calling it, are brought by a person.
func Required(config bootstrapv1.ClusterConfiguration) []Requirement {
	if config.Etcd.External.IsDefined() {
		return []Requirement{{Purpose: CA}, {Purpose: Proxy}, {Purpose: SA},
			{Purpose: Etcd, Brought: true, Keyless: true}, {Purpose: EtcdClient, Brought: true}}
	}
	return []Requirement{{Purpose: CA}, {Purpose: Etcd}, {Purpose: Proxy}, {Purpose: SA}}
}

// Found are Secrets of a cluster by purpose; one that does not exist is not in it.
type Found map[Purpose]*corev1.Secret

// Read reads the Secrets of a cluster at once, each from the first reader that has it: a cache that holds only
// labelled Secrets does not have those that users bring, so the API server comes second. What a cache returns is
// shared: do not change it.
func Read(ctx context.Context, cluster client.ObjectKey, purposes []Purpose, readers ...client.Reader) (Found, error) {
	secrets := make([]*corev1.Secret, len(purposes))
	reads, ctx := errgroup.WithContext(ctx)
	for i, p := range purposes {
		reads.Go(func() (err error) {
			secrets[i], err = readSecret(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: p.SecretName(cluster.Name)}, readers)
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return nil, err
	}
	out := Found{}
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

// Purposes are those of the requirements.
func Purposes(required []Requirement) []Purpose {
	out := make([]Purpose, 0, len(required))
	for _, r := range required {
		out = append(out, r.Purpose)
	}
	return out
}

// Fingerprint stands for the certificates of an authority's Secret, in their order: the first signs. Empty: there are none that can be read.
func Fingerprint(secret *corev1.Secret) string {
	certs, err := pki.ReencodeCerts(secret.Data[corev1.TLSCertKey])
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(certs)
	return hex.EncodeToString(sum[:16])
}
