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
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
)

// secretPurpose is the purpose of a Secret of the cluster, which determines its name. [decide] checks the Secrets in
// each reconciliation, and act creates them.
type secretPurpose = secrets.Purpose

const (
	purposeCA         = secrets.CA
	purposeEtcd       = secrets.Etcd
	purposeProxy      = secrets.Proxy
	purposeSA         = secrets.SA
	purposeKubeconfig = secrets.Admin
	// purposeEncryption is the Secret with the keys for encryption at rest.
	purposeEncryption = secrets.Encryption
)

// controllerUser is the user of this controller in the workload cluster.
const controllerUser = "slipway:" + Name

// authorities returns the purposes of Secrets with a certificate or key pair.
func authorities() []secretPurpose {
	return []secretPurpose{purposeCA, purposeEtcd, purposeProxy, purposeSA}
}

// watchedPurposes returns the purposes of Secrets that trigger a reconciliation. [Add] watches these Secrets.
func watchedPurposes() []secretPurpose { return append(authorities(), purposeEncryption) }

// authorities returns the purposes for the control plane. A control plane without components only signs
// certificates of its API.
func (s snapshot) authorities() []secretPurpose {
	if s.Capabilities.Components {
		return authorities()
	}
	return []secretPurpose{purposeCA}
}

// authorityProblem returns why a CA Secret cannot be used, or an empty string. Every Secret needs its private key,
// because the process signs with all of them. The plan waits for a user while there is a problem, and a condition
// reports it.
func authorityProblem(p secretPurpose, secret *corev1.Secret, now time.Time) string {
	if len(secret.Data[corev1.TLSCertKey]) == 0 || len(secret.Data[corev1.TLSPrivateKeyKey]) == 0 {
		return fmt.Sprintf("Secret %s must have the keys tls.crt and tls.key", secret.Name)
	}
	return secrets.ContentProblem(secrets.Requirement{Purpose: p}, secret, now)
}

// ownerOf returns the control plane as the owner of its Secrets.
func ownerOf(plane *hostedv1.HostedControlPlane) secrets.Owner {
	return secrets.Owner{Ref: *metav1.NewControllerRef(plane, hostedv1.GroupVersion.WithKind(kind))}
}

// newSecret returns a Secret of the cluster with the content. act calls it for a Secret that does not exist, and for
// the kubeconfig.
func newSecret(s snapshot, p secretPurpose, data map[string][]byte) *corev1.Secret {
	return secrets.NewSecret(client.ObjectKeyFromObject(s.Cluster), p, ownerOf(s.Plane), data)
}

// accessLifetime is the validity of a certificate that the controller uses itself during one reconciliation.
const accessLifetime = 10 * time.Minute

// accessName is a name in the certificate of every API server.
const accessName = "kubernetes"

// access returns the configuration for requests of the controller to the API server, at the address that the
// backend reports, with a new client certificate that is never stored. It does not use the kubeconfig Secret,
// because users who can write it must not gain the permissions of this program.
func access(s snapshot) (*rest.Config, error) {
	local, err := netip.ParseAddrPort(s.Process.Local)
	if err != nil || !local.Addr().IsLoopback() && !s.Capabilities.InPods {
		return nil, fault.New(fault.Unreachable, "ControlPlaneNotReady", "The API server of the control plane cannot be reached yet, retrying").From(err)
	}
	secret := s.Secrets[purposeCA]
	ca, err := pki.ParsePair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fault.New(fault.Invalid, secrets.ReasonInvalid, "Secret %s cannot be used", secret.Name).From(err)
	}
	leaf, err := ca.Issue(pki.Leaf{User: controllerUser, Groups: []string{secrets.AdminGroup}, Client: true, Lifetime: accessLifetime}, s.Now)
	if err != nil {
		return nil, err
	}
	config := &rest.Config{
		Host:            "https://" + local.String(),
		TLSClientConfig: rest.TLSClientConfig{CAData: ca.CertPEM, CertData: leaf.CertPEM, KeyData: leaf.KeyPEM},
		Timeout:         addonTimeout, QPS: -1, Burst: -1,
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
	}
	if !local.Addr().IsLoopback() { // the certificate does not contain the address
		config.ServerName = accessName
	}
	return config, nil
}

// newKubeconfig returns the content of the kubeconfig Secret. act calls it.
func newKubeconfig(s snapshot) (map[string][]byte, error) {
	return secrets.Issue(secrets.Access{Cluster: s.Cluster.Name, Endpoint: endpointOf(s)}, s.Secrets[purposeCA], secrets.KeyOptions{Leaf: lifetime(s.Plane)}, s.Now)
}

// lifetime of leaf certificates. Zero means the default of package pki, one year.
func lifetime(plane *hostedv1.HostedControlPlane) time.Duration {
	return time.Duration(plane.Spec.CertificateValidityDays) * 24 * time.Hour
}
