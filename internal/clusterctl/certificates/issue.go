package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

// skew is subtracted from the start of the validity period to allow for clock differences.
const skew = 5 * time.Minute

// maxRSABits is the maximum size of an RSA key in bits. Generating a larger one takes many seconds and delays all other
// Certificates.
const maxRSABits = 4096

// issuedCertificate is a certificate with its private key and its CA, PEM-encoded. reconciler.store writes it into the
// Secret.
type issuedCertificate struct{ Certificate, Key, Authority []byte }

// issue issues a certificate for the spec of a Certificate, when [Reconcile] finds that one is due; authority is nil
// for a self-signed one.
func issue(r request, authority *tls.Certificate, now time.Time) (issuedCertificate, error) {
	template, err := r.template(now)
	if err != nil {
		return issuedCertificate{}, err
	}
	key, err := r.key()
	if err != nil {
		return issuedCertificate{}, err
	}
	parent, signer := template, key
	if authority != nil {
		parent = authority.Leaf
		if signer, _ = authority.PrivateKey.(crypto.Signer); signer == nil {
			return issuedCertificate{}, fault.New(fault.Invalid, reasonIssuer, "the private key of the CA cannot sign certificates")
		}
		if now.After(parent.NotAfter) {
			return issuedCertificate{}, fault.New(fault.Invalid, reasonIssuer, "the CA certificate expired at %s; renew it", parent.NotAfter.UTC().Format(time.RFC3339))
		}
		if parent.NotAfter.Before(template.NotAfter) {
			template.NotAfter = parent.NotAfter
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return issuedCertificate{}, fault.New(fault.Invalid, reasonIssuer, "the certificate cannot be signed: %v", err).From(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return issuedCertificate{}, fault.New(fault.Bug, reasonIssuer, "the private key cannot be encoded").From(err)
	}
	out := issuedCertificate{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
	out.Authority = out.Certificate
	if authority != nil {
		out.Authority = encoded(authority.Leaf)
	}
	return out, nil
}

func (r request) template(now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	duration, _ := r.lifetime()
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: r.CommonName}, DNSNames: r.DNSNames,
		NotBefore: now.Add(-skew), NotAfter: now.Add(duration), IsCA: r.IsCA, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	if r.Subject != nil {
		t.Subject.Organization = r.Subject.Organizations
	}
	if r.IsCA {
		t.KeyUsage |= x509.KeyUsageCertSign
	}
	t.ExtKeyUsage = extended(r.Usages)
	if len(t.ExtKeyUsage) == 0 && !r.IsCA {
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	for _, text := range r.IPAddresses {
		ip := net.ParseIP(text)
		if ip == nil {
			return nil, fault.New(fault.Invalid, reasonRequest, "spec.ipAddresses contains %q, which is not an IP address", text)
		}
		t.IPAddresses = append(t.IPAddresses, ip)
	}
	for _, text := range r.URIs {
		u, err := url.Parse(text)
		if err != nil {
			return nil, fault.New(fault.Invalid, reasonRequest, "spec.uris contains an entry that is not a URI")
		}
		t.URIs = append(t.URIs, u)
	}
	if t.Subject.CommonName == "" && len(t.DNSNames)+len(t.IPAddresses)+len(t.URIs) == 0 {
		return nil, fault.New(fault.Invalid, reasonRequest, "no name is set; set spec.dnsNames or spec.commonName")
	}
	return t, nil
}

func extended(usages []string) []x509.ExtKeyUsage {
	var out []x509.ExtKeyUsage
	for _, u := range usages {
		switch u {
		case "server auth":
			out = append(out, x509.ExtKeyUsageServerAuth)
		case "client auth":
			out = append(out, x509.ExtKeyUsageClientAuth)
		}
	}
	return out
}

// key generates a private key. The defaults are cert-manager's.
func (r request) key() (crypto.Signer, error) {
	algorithm, size := "RSA", 2048
	if r.PrivateKey != nil {
		if r.PrivateKey.Algorithm != "" {
			algorithm, size = r.PrivateKey.Algorithm, 0
		}
		if r.PrivateKey.Size != 0 {
			size = r.PrivateKey.Size
		}
	}
	switch {
	case algorithm == "RSA" && (size == 0 || size >= 2048 && size <= maxRSABits):
		return rsa.GenerateKey(rand.Reader, max(size, 2048))
	case algorithm == "ECDSA" && (size == 0 || size == 256):
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case algorithm == "ECDSA" && size == 384:
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case algorithm == "ECDSA" && size == 521:
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case algorithm == "Ed25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fault.New(fault.Invalid, reasonRequest, "spec.privateKey specifies %s with %d bits, which is not supported; use RSA with 2048 to %d bits, ECDSA with 256, 384 or 521 bits, or Ed25519", algorithm, size, maxRSABits)
}
