package hosted

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeconfig"
	"github.com/slipwayhq/slipway/internal/plane/pki"
	"github.com/slipwayhq/slipway/internal/policy"
)

// Purpose of a Secret of the cluster; it is named <cluster>-<purpose>.
type Purpose string

// The purposes.
const (
	PurposeCA         Purpose = "ca"
	PurposeEtcd       Purpose = "etcd"
	PurposeProxy      Purpose = "proxy"
	PurposeSA         Purpose = "sa"
	PurposeKubeconfig Purpose = "kubeconfig"
	PurposeEncryption Purpose = "encryption"
)

const (
	kubeconfigKey = "value"
	// adminUser is who the kubeconfig is for: the administrator that kubeadm knows too.
	adminUser, adminGroup = "kubernetes-admin", "system:masters"
	// controllerUser is who this controller is in the workload cluster.
	controllerUser = "slipway:" + Name
)

// authorities are the purposes that hold a certificate or key pair.
func authorities() []Purpose { return []Purpose{PurposeCA, PurposeEtcd, PurposeProxy, PurposeSA} }

// authorities of a control plane. One without components signs nothing but certificates of its API.
func (s Snapshot) authorities() []Purpose {
	if s.Terms.Components {
		return authorities()
	}
	return []Purpose{PurposeCA}
}

func (p Purpose) secret(cluster string) string { return cluster + "-" + string(p) }

// newAuthority makes the content of an authority's Secret.
func newAuthority(s Snapshot, p Purpose) (map[string][]byte, error) {
	if p == PurposeSA {
		public, private, err := pki.SigningKey("")
		return map[string][]byte{corev1.TLSCertKey: public, corev1.TLSPrivateKeyKey: private}, err
	}
	names := map[Purpose]string{PurposeCA: "kubernetes", PurposeEtcd: "etcd-ca", PurposeProxy: "front-proxy-ca"}
	pair, err := pki.NewAuthority(pki.Authority{Name: names[p]}, s.Now)
	return map[string][]byte{corev1.TLSCertKey: pair.CertPEM, corev1.TLSPrivateKeyKey: pair.KeyPEM}, err
}

// problem says what is wrong with the content of an authority's Secret; empty: nothing.
func problem(p Purpose, secret *corev1.Secret) string {
	cert, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if len(cert) == 0 || len(key) == 0 {
		return fmt.Sprintf("Secret %s must have the keys tls.crt and tls.key", secret.Name)
	}
	if _, _, err := reencode(p, secret); err != nil {
		return fmt.Sprintf("Secret %s cannot be used: %s", secret.Name, err)
	}
	return ""
}

// newSecret returns a Secret of the cluster with the content.
func newSecret(s Snapshot, p Purpose, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Plane.Namespace, Name: p.secret(s.Cluster.Name),
			Labels:          map[string]string{clusterv1.ClusterNameLabel: s.Cluster.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.Plane, hostedv1.GroupVersion.WithKind(kind))},
		},
		Type: clusterv1.ClusterSecretType, Data: data,
	}
}

// accessLifetime is how long a certificate that the controller uses itself is valid: for one run of actions.
const accessLifetime = 10 * time.Minute

// access is how the controller itself reaches the API server: over loopback, with a certificate of its own that is never
// stored. What the kubeconfig's Secret says is of no concern: who writes it must not gain the rights of this program.
func access(s Snapshot) (*rest.Config, error) {
	local, err := netip.ParseAddrPort(s.Process.Local)
	if err != nil || !local.Addr().IsLoopback() {
		return nil, fault.New(fault.Unreachable, "ControlPlaneNotReady", "The API server of the control plane does not answer on this host yet, retrying").From(err)
	}
	secret := s.Secrets[PurposeCA]
	ca, err := pki.ParsePair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fault.New(fault.Invalid, "AuthorityInvalid", "Secret %s cannot be used", secret.Name).From(err)
	}
	leaf, err := ca.Issue(pki.Leaf{User: controllerUser, Groups: []string{adminGroup}, Client: true, Lifetime: accessLifetime}, s.Now)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            "https://" + local.String(),
		TLSClientConfig: rest.TLSClientConfig{CAData: ca.CertPEM, CertData: leaf.CertPEM, KeyData: leaf.KeyPEM},
		Timeout:         addonTimeout, QPS: -1, Burst: -1,
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
	}, nil
}

// newKubeconfig makes the content of the kubeconfig's Secret.
func newKubeconfig(s Snapshot, endpoint clusterv1.APIEndpoint) (map[string][]byte, error) {
	secret := s.Secrets[PurposeCA]
	ca, err := pki.ParsePair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fault.New(fault.Invalid, "AuthorityInvalid", "Secret %s cannot be used", secret.Name).From(err)
	}
	leaf, err := ca.Issue(pki.Leaf{User: adminUser, Groups: []string{adminGroup}, Client: true, Lifetime: lifetime(s.Plane)}, s.Now)
	if err != nil {
		return nil, err
	}
	access := pki.Access{Context: s.Cluster.Name + "-admin@" + s.Cluster.Name, User: s.Cluster.Name + "-admin", Server: server(endpoint), CA: ca.CertPEM}
	text, err := access.Embedded(leaf)
	return map[string][]byte{kubeconfigKey: text}, err
}

func server(e clusterv1.APIEndpoint) string {
	return "https://" + net.JoinHostPort(e.Host, fmt.Sprint(e.Port))
}

// lifetime of leaf certificates; zero: the default of package pki, a year.
func lifetime(plane *hostedv1.HostedControlPlane) time.Duration {
	return time.Duration(plane.Spec.CertificateValidityDays) * 24 * time.Hour
}

// Kubeconfig is what can be told of a kubeconfig's Secret.
type Kubeconfig struct {
	// Readable is false where there is none, or it cannot be used.
	Readable bool
	Server   string
	CA       []byte
	// From and Until bound the validity of its client certificate; zero where it has none.
	From, Until time.Time
}

func inspectKubeconfig(secret *corev1.Secret) Kubeconfig {
	if secret == nil {
		return Kubeconfig{}
	}
	// Where the server may be is no question here: it is compared with the endpoint.
	cfg, err := kubeconfig.Parse(secret.Data[kubeconfigKey], policy.Configuration{})
	if err != nil {
		return Kubeconfig{}
	}
	k := Kubeconfig{Readable: true, Server: cfg.Host, CA: cfg.CAData}
	if cert := firstCertificate(cfg.CertData); cert != nil {
		k.From, k.Until = cert.NotBefore, cert.NotAfter
	}
	return k
}

func firstCertificate(data []byte) *x509.Certificate {
	cert, err := pki.ParseCert(data)
	if err != nil {
		return nil
	}
	return cert
}

// outdated says why the kubeconfig must be written anew; empty: it need not.
func (k Kubeconfig) outdated(s Snapshot, endpoint clusterv1.APIEndpoint) string {
	switch {
	case !k.Readable:
		return "there is none that can be read"
	case k.Server != server(endpoint):
		return "the endpoint is " + server(endpoint)
	case !bytes.Equal(bytes.TrimSpace(k.CA), bytes.TrimSpace(s.Secrets[PurposeCA].Data[corev1.TLSCertKey])):
		return "the authority is another"
	case k.Until.IsZero():
		return "it has no client certificate"
	case !s.Now.Before(k.halfLife()):
		return "half of its client certificate's life is over"
	}
	return ""
}

func (k Kubeconfig) halfLife() time.Time { return k.From.Add(k.Until.Sub(k.From) / 2) }

// ours reports whether the Secret was made by this controller: those of users are left alone. One that has lost
// its owner is told by its type.
func ours(secret *corev1.Secret, plane *hostedv1.HostedControlPlane) bool {
	owner := metav1.GetControllerOf(secret)
	if owner == nil {
		return secret.Type == clusterv1.ClusterSecretType
	}
	return ofPlane(*owner, plane)
}

// ofPlane reports whether the reference is to the control plane, in this life or an earlier one.
func ofPlane(ref metav1.OwnerReference, plane *hostedv1.HostedControlPlane) bool {
	return ref.Kind == kind && ref.Name == plane.Name
}

// lost reports whether a Secret of ours does not belong to the control plane, or to one of an earlier life.
func lost(secret *corev1.Secret, plane *hostedv1.HostedControlPlane) bool {
	owner := metav1.GetControllerOf(secret)
	return ours(secret, plane) && (owner == nil || owner.UID != plane.UID || owner.APIVersion != hostedv1.GroupVersion.String())
}

// own makes the control plane the controller of the Secret.
func own(secret client.Object, plane *hostedv1.HostedControlPlane) {
	others := slices.DeleteFunc(slices.Clone(secret.GetOwnerReferences()), func(ref metav1.OwnerReference) bool { return ofPlane(ref, plane) })
	secret.SetOwnerReferences(append(others, *metav1.NewControllerRef(plane, hostedv1.GroupVersion.WithKind(kind))))
}
