package certificates

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// defaultDuration and minDuration are cert-manager's values, on which manifests of providers rely.
const (
	defaultDuration = 90 * 24 * time.Hour
	minDuration     = time.Hour
	// minAge is the minimum age at which a certificate is renewed, even if renewBefore requires less, because each
	// renewal writes a Secret.
	minAge = minDuration / 3
)

// lifetime returns the lifetime of a certificate, and how long before its end it is renewed.
func (r request) lifetime() (duration, before time.Duration) {
	duration = defaultDuration
	if r.Duration != nil && r.Duration.Duration >= minDuration {
		duration = r.Duration.Duration
	}
	before = duration / 3
	if r.RenewBefore != nil && r.RenewBefore.Duration > 0 && r.RenewBefore.Duration < duration {
		before = min(r.RenewBefore.Duration, duration-minAge)
	}
	return duration, before
}

// hash returns a hash of the request. A new certificate is issued when it changes. It is stored in an annotation of the
// Secret. A change to the JSON form of [request] therefore reissues every certificate.
func (r request) hash() string {
	data, err := json.Marshal(r)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))[:16]
}

// issueReason returns the reason to issue a certificate, or "" if the Secret is up to date. [Reconcile] calls it for
// each Certificate. authority is nil for a self-signed certificate. A certificate is issued when:
//
//   - there is no Secret, its content is incomplete or cannot be read, or its certificate is not valid yet
//   - the names, the issuer or the lifetime have changed
//   - it is about to expire, unless it expires together with its CA: so would a new one
//   - its CA was renewed
func issueReason(c certManagerCertificate, secret *corev1.Secret, authority *tls.Certificate, now time.Time) string {
	if secret == nil {
		return "the Secret does not exist"
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return "the Secret has no valid certificate with its private key"
	}
	leaf := pair.Leaf
	_, before := c.Spec.lifetime()
	switch {
	case secret.Annotations[requestHash] != c.Spec.hash():
		return "the specification of the Certificate has changed"
	case now.After(leaf.NotAfter):
		return "the certificate has expired"
	case now.After(leaf.NotAfter.Add(-before)) && (authority == nil || leaf.NotAfter.Before(authority.Leaf.NotAfter)):
		return "the certificate is about to expire"
	case now.Before(leaf.NotBefore):
		return "the certificate is not valid yet"
	case len(authorityOf(secret)) == 0:
		return "the Secret has no CA certificate"
	}
	if authority == nil {
		return ""
	}
	if leaf.CheckSignatureFrom(authority.Leaf) != nil || !bytes.Equal(bytes.TrimSpace(authorityOf(secret)), bytes.TrimSpace(encoded(authority.Leaf))) {
		return "the CA was renewed"
	}
	return ""
}

// authorityOf returns the CA certificate in a Secret.
func authorityOf(s *corev1.Secret) []byte { return s.Data["ca.crt"] }

func encoded(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// mayWriteSecret reports whether a Secret may be written for the Certificate: it does not exist yet, or it was issued
// for this Certificate. [Reconcile] calls it before it issues a certificate.
func mayWriteSecret(s *corev1.Secret, c certManagerCertificate) bool {
	return s == nil || s.Annotations[certificateName] == c.Name
}
