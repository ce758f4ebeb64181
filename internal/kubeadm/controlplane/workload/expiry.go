package workload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	kubeadmsecrets "github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/workload/portforward"
)

// defaultPort is kubeadm's default of bindPort.
const defaultPort = 6443

const expiryTimeout = 10 * time.Second

// ExpiryReader reads certificates of API servers. The KubeadmControlPlane controller uses it for Machines whose
// KubeadmConfig does not record the expiration yet.
type ExpiryReader struct {
	Forwarder EtcdForwarder
	// Secrets lists the readers that are tried in order.
	Secrets []client.Reader
}

// ExpiryServer is the API server on a Node. The KubeadmControlPlane controller lists them in [ReadRequest].
type ExpiryServer struct {
	Cluster client.ObjectKey
	Node    string
	// Port of the API server. It defaults to defaultPort.
	Port int
}

// Expiry returns the earliest expiration in the certificate chain that an API server presents, excluding the CA of the
// cluster. [Reader.Read] calls it.
func (r ExpiryReader) Expiry(ctx context.Context, s ExpiryServer) (time.Time, error) {
	roots, err := r.roots(ctx, s.Cluster)
	if err != nil {
		return time.Time{}, err
	}
	if s.Port == 0 {
		s.Port = defaultPort
	}
	ctx, cancel := context.WithTimeout(ctx, expiryTimeout)
	defer cancel()
	conn, err := r.Forwarder.Forward(ctx, s.Cluster, portforward.Target{Namespace: metav1.NamespaceSystem, Pod: "kube-apiserver-" + s.Node, Port: s.Port})
	if err != nil {
		return time.Time{}, unreachable(s, err)
	}
	defer func() { _ = conn.Close() }()
	var found time.Time
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: s.Node,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies, at a time at which an expired certificate was valid.
		VerifyConnection: func(state tls.ConnectionState) (err error) {
			found, err = expires(state.PeerCertificates, roots)
			return err
		},
	}
	if err := tls.Client(conn, config).HandshakeContext(ctx); err != nil && found.IsZero() {
		return time.Time{}, unreachable(s, err)
	}
	return found, nil
}

// roots returns the CA of the cluster.
func (r ExpiryReader) roots(ctx context.Context, cluster client.ObjectKey) (*x509.CertPool, error) {
	found, err := kubeadmsecrets.Read(ctx, cluster, []kubeadmsecrets.Purpose{kubeadmsecrets.CA}, r.Secrets...)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if secret := found[kubeadmsecrets.CA]; secret == nil || !roots.AppendCertsFromPEM(secret.Data[corev1.TLSCertKey]) {
		return nil, fault.New(fault.Unreachable, "AuthorityMissing", "Secret %s has no certificate, which is required to verify API servers", kubeadmsecrets.CA.SecretName(cluster.Name))
	}
	return roots, nil
}

// expires returns the earliest expiration in the presented chain. The certificate must be signed by a root.
func expires(presented []*x509.Certificate, roots *x509.CertPool) (time.Time, error) {
	own := presented[0]
	between := x509.NewCertPool()
	for _, c := range presented[1:] {
		between.AddCert(c)
	}
	chains, err := own.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: own.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return time.Time{}, err
	}
	first, chain := own.NotAfter, chains[0]
	for i := 1; i < len(chain)-1; i++ { // a new Machine renews all certificates except the CA, which may be the only one
		if chain[i].NotAfter.Before(first) {
			first = chain[i].NotAfter
		}
	}
	return first, nil
}

func unreachable(s ExpiryServer, err error) error {
	return fault.New(fault.Unreachable, "CertificateUnknown", "The API server on Node %s does not present a certificate that is signed by the CA of Cluster %s",
		s.Node, s.Cluster.Name).From(err)
}
