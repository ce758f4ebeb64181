package secrets

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
)

// Evaluation describes the required Secrets that are missing or unusable. The KubeadmControlPlane controller and the
// KubeadmConfig controller compute it in a reconciliation, create the Secrets in Create, and report the Problems in the
// condition CertificatesAvailable.
type Evaluation struct {
	// Create lists the missing Secrets that can be generated.
	Create []Purpose
	// Problems lists the problems that the user has to correct, in the order of the requirements.
	Problems []secretProblem
}

// MissingText lists the missing and unusable Secrets for a message. It is empty if there are none.
func (s Evaluation) MissingText(cluster string) string {
	var out []string
	for _, problem := range s.Problems {
		out = append(out, problem.Text)
	}
	for _, purpose := range s.Create {
		out = append(out, "Secret "+purpose.SecretName(cluster)+" is being created")
	}
	return strings.Join(out, "; ")
}

// secretProblem is a Secret that is missing and cannot be generated, or that cannot be used.
type secretProblem struct {
	Purpose Purpose
	// Secret is the name of the Secret.
	Secret string
	// Missing is true if the Secret does not exist.
	Missing bool
	// Text describes the problem and how to correct it.
	Text string
}

func (s Evaluation) Complete() bool { return len(s.Create) == 0 && len(s.Problems) == 0 }

// EvaluateInput is the input of [Evaluate]. The controllers of control planes and KubeadmConfigs fill it in.
type EvaluateInput struct {
	Now      time.Time
	Cluster  string
	Required []Requirement
	Found    Secrets
	// Generate is false once the first node of the cluster may exist. A missing Secret is a problem from then on,
	// because the nodes do not trust a newly generated CA.
	Generate bool
}

// Evaluate returns the required Secrets that are missing or unusable. The controllers of KubeadmControlPlanes and
// KubeadmConfigs call it before the first Machine is created or rendered.
func Evaluate(c EvaluateInput) Evaluation {
	var s Evaluation
	for _, r := range c.Required {
		name := r.Purpose.SecretName(c.Cluster)
		secret := c.Found[r.Purpose]
		switch {
		case secret != nil:
			if text := ContentProblem(r, secret, c.Now); text != "" {
				s.Problems = append(s.Problems, secretProblem{Purpose: r.Purpose, Secret: name, Text: text})
			}
		case r.UserProvided:
			s.Problems = append(s.Problems, secretProblem{r.Purpose, name, true, fmt.Sprintf(
				"Secret %s does not exist; create it with %s of the external etcd", name, contentOf(r))})
		case !c.Generate:
			s.Problems = append(s.Problems, secretProblem{r.Purpose, name, true, missingText(r.Purpose, name)})
		default:
			s.Create = append(s.Create, r.Purpose)
		}
	}
	return s
}

// missingText returns the message for a missing Secret whose content also exists on every control plane node: the
// operations that fail without it, and how to restore it.
func missingText(p Purpose, name string) string {
	waits, files := "no control plane Machine can join", "front-proxy-ca.crt and front-proxy-ca.key"
	switch p {
	case CA:
		waits, files = "no Machine can join, and the kubeconfig cannot be renewed", "ca.crt and ca.key"
	case Etcd:
		waits, files = "no control plane Machine can join, and etcd members cannot be reached", "etcd/ca.crt and etcd/ca.key"
	case SA:
		files = "sa.pub and sa.key"
	}
	return fmt.Sprintf("Secret %s does not exist, and its content cannot be generated again, because the cluster depends on the original: "+
		"until it is restored, %s. Restore it from a backup, or from %s in /etc/kubernetes/pki on a control plane node", name, waits, files)
}

func contentOf(r Requirement) string {
	switch {
	case r.Purpose == EtcdClient:
		return "the client certificate (tls.crt) and its key (tls.key)"
	case r.Keyless:
		return "the CA certificate (tls.crt)"
	}
	return "the certificate (tls.crt) and its key (tls.key)"
}

// ContentProblem returns the problem with the content of a Secret at the given time, or the empty string if it is
// valid. The HostedControlPlane controller calls it for each CA.
func ContentProblem(r Requirement, secret *corev1.Secret, now time.Time) string {
	cert, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	// Users may store the CA keys outside the cluster. The service account key is required for signing tokens.
	keyless := r.Keyless || r.Purpose == CA || r.Purpose == Etcd || r.Purpose == Proxy
	switch {
	case len(cert) == 0:
		return fmt.Sprintf("Secret %s has no certificate in key tls.crt; add it", secret.Name)
	case len(key) == 0 && !keyless:
		return fmt.Sprintf("Secret %s must have the keys tls.crt and tls.key", secret.Name)
	}
	certs, _, err := Content(r.Purpose, secret)
	if err != nil {
		return fmt.Sprintf("Secret %s cannot be used: %s", secret.Name, err)
	}
	if r.Purpose != SA {
		if first, err := pki.ParseCert(certs); err == nil && now.After(first.NotAfter) {
			return fmt.Sprintf("The certificate in Secret %s expired on %s: clients do not trust the certificates that it signs. Replace tls.crt by a valid certificate, with the same "+
				"key and subject if the cluster has nodes", secret.Name, first.NotAfter.UTC().Format(time.RFC3339))
		}
	}
	if n := bytes.Count(certs, []byte("-----BEGIN ")); r.SingleCertificate && len(key) > 0 && n > 1 {
		return fmt.Sprintf("Secret %s has %d certificates in tls.crt, but kube-controller-manager on kubeadm nodes requires a single one: leave only the certificate of "+
			"tls.key, or set clusterConfiguration.controllerManager.extraArgs (%s) to a file with that certificate, and create the file in files", secret.Name, n, signingFile)
	}
	return ""
}

// ExpiresAt returns when the certificate in a Secret expires, or the zero time if it has no readable certificate. The
// KubeadmControlPlane controller calls it for the conditions and for each Machine.
func ExpiresAt(secret *corev1.Secret) time.Time {
	if secret == nil {
		return time.Time{}
	}
	cert, err := pki.ParseCert(secret.Data[corev1.TLSCertKey])
	if err != nil {
		return time.Time{}
	}
	return cert.NotAfter
}

// Content returns the certificate and key of a Secret. Both are parsed and encoded again, so that any other data in
// the Secret is dropped. For service account keys, cert is the public key. The key is nil if the Secret has none. The
// HostedControlPlane controller, package bootstrap/render and package controllers/credentials call it.
func Content(p Purpose, secret *corev1.Secret) (cert, key []byte, err error) {
	cert, key = secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	switch {
	case p == SA:
		return pki.ReencodeKey(key)
	case len(key) == 0:
		cert, err = pki.ReencodeCerts(cert)
		return cert, nil, err
	}
	return pki.Reencode(cert, key)
}
