package hosted

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/authority"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/pki"
)

// Purpose of a Secret of the cluster.
type Purpose = authority.Purpose

// The purposes.
const (
	PurposeCA         = authority.CA
	PurposeEtcd       = authority.Etcd
	PurposeProxy      = authority.Proxy
	PurposeSA         = authority.SA
	PurposeKubeconfig = authority.Admin
	// PurposeEncryption are the keys with which data in etcd is encrypted.
	PurposeEncryption = authority.Encryption
)

// controllerUser is who this controller is in the workload cluster.
const controllerUser = "slipway:" + Name

// authorities are the purposes that hold a certificate or key pair.
func authorities() []Purpose { return []Purpose{PurposeCA, PurposeEtcd, PurposeProxy, PurposeSA} }

// watched are the Secrets whose changes are to be seen at once.
func watched() []Purpose { return append(authorities(), PurposeEncryption) }

// authorities of a control plane. One without components signs nothing but certificates of its API.
func (s Snapshot) authorities() []Purpose {
	if s.Terms.Components {
		return authorities()
	}
	return []Purpose{PurposeCA}
}

// problem says what is wrong with the content of an authority's Secret; empty: nothing. The process signs with all of them,
// so each needs its key.
func problem(p Purpose, secret *corev1.Secret, now time.Time) string {
	if len(secret.Data[corev1.TLSCertKey]) == 0 || len(secret.Data[corev1.TLSPrivateKeyKey]) == 0 {
		return fmt.Sprintf("Secret %s must have the keys tls.crt and tls.key", secret.Name)
	}
	return authority.Unusable(authority.Requirement{Purpose: p}, secret, now)
}

// ownerOf is the control plane as the owner of its Secrets.
func ownerOf(plane *hostedv1.HostedControlPlane) authority.Owner {
	return authority.Owner{Ref: *metav1.NewControllerRef(plane, hostedv1.GroupVersion.WithKind(kind))}
}

// newSecret returns a Secret of the cluster with the content.
func newSecret(s Snapshot, p Purpose, data map[string][]byte) *corev1.Secret {
	return authority.NewSecret(client.ObjectKeyFromObject(s.Cluster), p, ownerOf(s.Plane), data)
}

// accessLifetime is how long a certificate that the controller uses itself is valid: for one run of actions.
const accessLifetime = 10 * time.Minute

// accessName is one that the certificate of every API server has.
const accessName = "kubernetes"

// access is how the controller itself reaches the API server: where the backend says, with a certificate of its own that is never
// stored. What the kubeconfig's Secret says is of no concern: who writes it must not gain the rights of this program.
func access(s Snapshot) (*rest.Config, error) {
	local, err := netip.ParseAddrPort(s.Process.Local)
	if err != nil || !local.Addr().IsLoopback() && !s.Terms.InPods {
		return nil, fault.New(fault.Unreachable, "ControlPlaneNotReady", "The API server of the control plane does not answer this program yet, retrying").From(err)
	}
	secret := s.Secrets[PurposeCA]
	ca, err := pki.ParsePair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fault.New(fault.Invalid, authority.ReasonInvalid, "Secret %s cannot be used", secret.Name).From(err)
	}
	leaf, err := ca.Issue(pki.Leaf{User: controllerUser, Groups: []string{authority.AdminGroup}, Client: true, Lifetime: accessLifetime}, s.Now)
	if err != nil {
		return nil, err
	}
	config := &rest.Config{
		Host:            "https://" + local.String(),
		TLSClientConfig: rest.TLSClientConfig{CAData: ca.CertPEM, CertData: leaf.CertPEM, KeyData: leaf.KeyPEM},
		Timeout:         addonTimeout, QPS: -1, Burst: -1,
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
	}
	if !local.Addr().IsLoopback() { // the certificate does not name the address
		config.ServerName = accessName
	}
	return config, nil
}

// newKubeconfig makes the content of the kubeconfig's Secret.
func newKubeconfig(s Snapshot, endpoint clusterv1.APIEndpoint) (map[string][]byte, error) {
	return authority.Issue(authority.Access{Cluster: s.Cluster.Name, Endpoint: endpoint}, s.Secrets[PurposeCA], authority.Keys{Leaf: lifetime(s.Plane)}, s.Now)
}

// lifetime of leaf certificates; zero: the default of package pki, a year.
func lifetime(plane *hostedv1.HostedControlPlane) time.Duration {
	return time.Duration(plane.Spec.CertificateValidityDays) * 24 * time.Hour
}
