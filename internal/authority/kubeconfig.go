package authority

import (
	"bytes"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeconfig"
	"github.com/slipwayhq/slipway/internal/plane/pki"
	"github.com/slipwayhq/slipway/internal/policy"
)

// KubeconfigKey is the key of the kubeconfig in its Secret.
const KubeconfigKey = "value"

// AdminUser and AdminGroup are who the kubeconfig is for: the administrator that kubeadm knows too.
const (
	AdminUser  = "kubernetes-admin"
	AdminGroup = "system:masters"
)

// ReasonInvalid is the reason of faults about authorities that cannot be used; their kind is Invalid.
const ReasonInvalid = "AuthorityInvalid"

// Kubeconfig is what a kubeconfig's Secret says.
type Kubeconfig struct {
	// Readable is false where there is none, or it cannot be used.
	Readable bool
	Server   string
	CA       []byte
	// ServerName is the name in the server's certificate, where that is not the host of Server.
	ServerName string
	// From and Until bound the validity of its client certificate; zero where it has none.
	From, Until time.Time
}

// Inspect reads the Secret; nil is one that does not exist.
func Inspect(secret *corev1.Secret) Kubeconfig {
	if secret == nil {
		return Kubeconfig{}
	}
	// Where the server may be is no question here: it is compared with the endpoint.
	cfg, err := kubeconfig.Parse(secret.Data[KubeconfigKey], policy.Configuration{})
	if err != nil {
		return Kubeconfig{}
	}
	k := Kubeconfig{Readable: true, Server: cfg.Host, CA: cfg.CAData, ServerName: cfg.ServerName}
	if cert, err := pki.ParseCert(cfg.CertData); err == nil {
		k.From, k.Until = cert.NotBefore, cert.NotAfter
	}
	return k
}

// Server is the URL of an endpoint.
func Server(e clusterv1.APIEndpoint) string {
	return "https://" + net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}

// Outdated says why the kubeconfig must be issued again for the endpoint and the CA's Secret; empty: it need not.
func (k Kubeconfig) Outdated(endpoint clusterv1.APIEndpoint, ca *corev1.Secret, now time.Time) string {
	switch {
	case !k.Readable:
		return "there is none that can be read"
	case k.Server != Server(endpoint):
		return "the endpoint is " + Server(endpoint)
	case !bytes.Equal(bytes.TrimSpace(k.CA), bytes.TrimSpace(ca.Data[corev1.TLSCertKey])):
		return "the authority is another"
	case k.Until.IsZero():
		return "it has no client certificate"
	case !now.Before(k.HalfLife()):
		return "half of its client certificate's life is over"
	}
	return ""
}

// HalfLife is when half of the client certificate's life is over, and the kubeconfig is issued again.
func (k Kubeconfig) HalfLife() time.Time { return k.From.Add(k.Until.Sub(k.From) / 2) }

// Access is what a kubeconfig leads to.
type Access struct {
	Cluster  string
	Endpoint clusterv1.APIEndpoint
}

// Issue makes the content of the kubeconfig's Secret: a client certificate with a new key, signed by the CA.
func Issue(to Access, ca *corev1.Secret, keys Keys, now time.Time) (map[string][]byte, error) {
	if len(ca.Data[corev1.TLSPrivateKeyKey]) == 0 {
		return nil, fault.New(fault.Invalid, ReasonInvalid, "Secret %s has no key in tls.key, so no kubeconfig can be issued; "+
			"create Secret %s with the kubeconfig of an administrator in key %s", ca.Name, Admin.SecretName(to.Cluster), KubeconfigKey)
	}
	pair, err := pki.ParsePair(ca.Data[corev1.TLSCertKey], ca.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fault.New(fault.Invalid, ReasonInvalid, "Secret %s cannot be used", ca.Name).From(err)
	}
	leaf, err := pair.Issue(pki.Leaf{
		User: AdminUser, Groups: []string{AdminGroup}, Client: true, Algorithm: keys.Algorithm, Lifetime: keys.Leaf,
	}, now)
	if err != nil {
		return nil, err
	}
	access := pki.Access{Context: to.Cluster + "-admin@" + to.Cluster, User: to.Cluster + "-admin", Server: Server(to.Endpoint), CA: pair.CertPEM}
	text, err := access.Embedded(leaf)
	return map[string][]byte{KubeconfigKey: text}, err
}
