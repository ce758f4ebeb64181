package secrets

import (
	"bytes"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/workload"
)

// kubeconfigKey is the key of a kubeconfig Secret, from the contract of Cluster API.
const kubeconfigKey = "value"

// adminUser and AdminGroup are the user and group of the kubeconfig's client certificate, as in the admin.conf of
// kubeadm.
const (
	adminUser  = "kubernetes-admin"
	AdminGroup = "system:masters"
)

// ReasonInvalid is the reason of faults with kind Invalid for CAs that cannot be used.
const ReasonInvalid = "AuthorityInvalid"

// Kubeconfig is the content of the Secret <cluster>-kubeconfig. The controllers of KubeadmControlPlanes and
// HostedControlPlanes parse it in each reconciliation, and write it again ([Issue]) if there is a
// [Kubeconfig.ReissueReason].
type Kubeconfig struct {
	// Readable is false if there is no kubeconfig or it cannot be used.
	Readable bool
	Server   string
	CA       []byte
	// ServerName is the name in the server's certificate, if it differs from the host of Server.
	ServerName string
	// From and Until are the validity bounds of the client certificate, or zero if it has none.
	From, Until time.Time
}

// ParseKubeconfig reads the kubeconfig from the Secret, which may be nil. The controllers of control planes and package
// controllers/credentials call it.
func ParseKubeconfig(secret *corev1.Secret) Kubeconfig {
	if secret == nil {
		return Kubeconfig{}
	}
	// The empty policy allows any server address, because the address is compared with the endpoint.
	cfg, err := workload.ParseKubeconfig(secret.Data[kubeconfigKey], policy.Configuration{})
	if err != nil {
		return Kubeconfig{}
	}
	k := Kubeconfig{Readable: true, Server: cfg.Host, CA: cfg.CAData, ServerName: cfg.ServerName}
	if cert, err := pki.ParseCert(cfg.CertData); err == nil {
		k.From, k.Until = cert.NotBefore, cert.NotAfter
	}
	return k
}

// ServerURL returns the URL of an endpoint.
func ServerURL(e clusterv1.APIEndpoint) string {
	return "https://" + net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}

// ReissueReason returns the reason why the kubeconfig must be reissued for the endpoint and the CA Secret, or the empty
// string if it is up to date. The controllers of KubeadmControlPlanes and HostedControlPlanes call it in each
// reconciliation.
func (k Kubeconfig) ReissueReason(endpoint clusterv1.APIEndpoint, ca *corev1.Secret, now time.Time) string {
	switch {
	case !k.Readable:
		return "it does not exist or cannot be read"
	case k.Server != ServerURL(endpoint):
		return "the endpoint is " + ServerURL(endpoint)
	case !bytes.Equal(bytes.TrimSpace(k.CA), bytes.TrimSpace(ca.Data[corev1.TLSCertKey])):
		return "the CA has changed"
	case k.Until.IsZero():
		return "it has no client certificate"
	case !now.Before(k.HalfLife()):
		return "its client certificate has passed half of its lifetime"
	}
	return ""
}

// HalfLife returns the time at which half of the client certificate's validity has passed and the kubeconfig is
// reissued. The controllers of control planes reconcile again at that time.
func (k Kubeconfig) HalfLife() time.Time { return k.From.Add(k.Until.Sub(k.From) / 2) }

// Access identifies the cluster and endpoint of a kubeconfig. The controllers of control planes fill it in for [Issue].
type Access struct {
	Cluster  string
	Endpoint clusterv1.APIEndpoint
}

// Issue returns the content of the kubeconfig Secret, with a new client key and a certificate signed by the CA. The
// controllers of KubeadmControlPlanes and HostedControlPlanes call it.
func Issue(to Access, ca *corev1.Secret, keys KeyOptions, now time.Time) (map[string][]byte, error) {
	if len(ca.Data[corev1.TLSPrivateKeyKey]) == 0 {
		return nil, fault.New(fault.Invalid, ReasonInvalid, "Secret %s has no key in tls.key, so no kubeconfig can be issued; "+
			"create Secret %s with the kubeconfig of an administrator in key %s", ca.Name, Admin.SecretName(to.Cluster), kubeconfigKey)
	}
	pair, err := pki.ParsePair(ca.Data[corev1.TLSCertKey], ca.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fault.New(fault.Invalid, ReasonInvalid, "Secret %s cannot be used", ca.Name).From(err)
	}
	leaf, err := pair.Issue(pki.Leaf{
		User: adminUser, Groups: []string{AdminGroup}, Client: true, Algorithm: keys.Algorithm, Lifetime: keys.Leaf,
	}, now)
	if err != nil {
		return nil, err
	}
	access := pki.Access{Context: to.Cluster + "-admin@" + to.Cluster, User: to.Cluster + "-admin", Server: ServerURL(to.Endpoint), CA: pair.CertPEM}
	text, err := access.Embedded(leaf)
	return map[string][]byte{kubeconfigKey: text}, err
}
