package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Lifetimes of CAs and leaf certificates. The validity begins slightly in the past to tolerate clock skew.
const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	leafLifetime      = 365 * 24 * time.Hour
	backdate          = 5 * time.Minute
)

const certificateBlock = "CERTIFICATE" // in PEM

// Pair is a certificate with its key, both also in PEM. Controllers use it for the CAs and certificates of workload
// clusters, and [Folder] for those on disk.
type Pair struct {
	Cert    *x509.Certificate
	CertPEM []byte
	KeyPEM  []byte

	key crypto.Signer
}

// FirstCertPEM returns the certificate in PEM without the remaining certificates of the chain. Packages controlplane
// and operate/rotate call it.
func (p Pair) FirstCertPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: p.Cert.Raw})
}

// ParsePair parses a pair, and returns an error if the key does not match the certificate. The first
// certificate of a chain is used.
func ParsePair(certPEM, keyPEM []byte) (Pair, error) {
	cert, err := ParseCert(certPEM)
	if err != nil {
		return Pair{}, err
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return Pair{}, err
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(cert.PublicKey) {
		return Pair{}, errors.New("the private key does not belong to the certificate")
	}
	return Pair{Cert: cert, CertPEM: certPEM, KeyPEM: keyPEM, key: key}, nil
}

// ParseCert parses the first certificate of PEM data.
func ParseCert(data []byte) (*x509.Certificate, error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == certificateBlock {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, errors.New("no certificate in PEM data")
}

// Reencode returns the certificates and the key in PEM without other content: text around and between the PEM blocks,
// which could have a meaning for other programs, is removed. It is for Secrets that a user provided. The key must match
// the first certificate. Packages kubeadm/secrets and operate/rotate call it.
func Reencode(certPEM, keyPEM []byte) (cert, key []byte, err error) {
	pair, err := ParsePair(certPEM, keyPEM)
	if err != nil {
		return nil, nil, err
	}
	if cert, err = ReencodeCerts(certPEM); err != nil {
		return nil, nil, err
	}
	key, err = encodeKey(pair.key)
	return cert, key, err
}

// ReencodeCerts returns the certificates of PEM data, at least one, without other content. Packages kubeadm/secrets and
// operate/rotate call it.
func ReencodeCerts(certPEM []byte) ([]byte, error) {
	var out []byte
	for block, rest := pem.Decode(certPEM); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certificateBlock {
			continue
		}
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: parsed.Raw})...)
	}
	if out == nil {
		return nil, errors.New("no certificate in PEM data")
	}
	return out, nil
}

// Authority describes a CA to create. Callers of [NewAuthority] fill it.
type Authority struct {
	Name      string        // common name
	Algorithm Algorithm     // default ECDSA-P256
	Lifetime  time.Duration // default ten years
}

// NewAuthority creates a self-signed CA that is valid from now. Packages kubeadm/secrets and manager/webhook call it.
func NewAuthority(a Authority, now time.Time) (Pair, error) {
	key, err := newKey(a.Algorithm)
	if err != nil {
		return Pair{}, err
	}
	return selfSign(a, key, now)
}

func selfSign(a Authority, key crypto.Signer, now time.Time) (Pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: a.Name},
		NotBefore:             now.Add(-backdate).UTC(),
		NotAfter:              now.Add(orElse(a.Lifetime, authorityLifetime)).UTC(),
		KeyUsage:              usageOf(key.Public()) | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true, // it signs leaf certificates but no other CAs
	}
	cert, certPEM, err := sign(template, template, key.Public(), key)
	if err != nil {
		return Pair{}, err
	}
	return paired(cert, certPEM, key)
}

// paired returns the pair of a certificate and its key.
func paired(cert *x509.Certificate, certPEM []byte, key crypto.Signer) (Pair, error) {
	keyPEM, err := encodeKey(key)
	return Pair{Cert: cert, CertPEM: certPEM, KeyPEM: keyPEM, key: key}, err
}

// Leaf describes a certificate to issue. It is a serving certificate if it has Names or IPs, and a client
// certificate if Client is set. It may be both. Callers of [Pair.Issue] and [Folder.Leaf] fill it.
type Leaf struct {
	User      string   // common name
	Groups    []string // organizations
	Names     []string // DNS names
	IPs       []net.IP
	Algorithm Algorithm     // default ECDSA-P256
	Lifetime  time.Duration // default one year; limited by the lifetime of the CA
	Client    bool          // usable as a client certificate
}

// Issue issues a leaf certificate with a new key.
func (p Pair) Issue(l Leaf, now time.Time) (Pair, error) {
	key, err := newKey(l.Algorithm)
	if err != nil {
		return Pair{}, err
	}
	cert, certPEM, err := p.IssueFor(key.Public(), l, now)
	if err != nil {
		return Pair{}, err
	}
	return paired(cert, certPEM, key)
}

// IssueFor issues a leaf certificate for the key of another program, such as the key of a CertificateSigningRequest.
func (p Pair) IssueFor(public crypto.PublicKey, l Leaf, now time.Time) (*x509.Certificate, []byte, error) {
	if p.key == nil || !p.Cert.IsCA {
		return nil, nil, fmt.Errorf("issue certificate for %q: the issuer is not an authority with a key", l.User)
	}
	until := now.Add(orElse(l.Lifetime, leafLifetime))
	if until.After(p.Cert.NotAfter) {
		until = p.Cert.NotAfter
	}
	return sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: l.User, Organization: l.Groups},
		NotBefore:   now.Add(-backdate).UTC(),
		NotAfter:    until.UTC(),
		KeyUsage:    usageOf(public),
		ExtKeyUsage: l.usages(),
		DNSNames:    l.Names,
		IPAddresses: l.IPs,
	}, p.Cert, public, p.key)
}

// usageOf returns the key usage. Only RSA keys can encrypt other keys.
func usageOf(key crypto.PublicKey) x509.KeyUsage {
	if _, rsa := key.(*rsa.PublicKey); rsa {
		return x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	}
	return x509.KeyUsageDigitalSignature
}

func (l Leaf) usages() []x509.ExtKeyUsage {
	var u []x509.ExtKeyUsage
	if len(l.Names) > 0 || len(l.IPs) > 0 {
		u = append(u, x509.ExtKeyUsageServerAuth)
	}
	if l.Client {
		u = append(u, x509.ExtKeyUsageClientAuth)
	}
	return u
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, []byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, nil, fmt.Errorf("sign certificate %q: %w", template.Subject.CommonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der}), nil
}

func orElse(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}
