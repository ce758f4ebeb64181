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

// Lifetimes: an authority lives ten years, a leaf one. Validity
// begins a little in the past, so that a clock that lags does not refuse it.
const (
	AuthorityLifetime = 10 * 365 * 24 * time.Hour
	LeafLifetime      = 365 * 24 * time.Hour
	backdate          = 5 * time.Minute
)

const certificateBlock = "CERTIFICATE" // in PEM

// Pair is a certificate with its key, both also in PEM.
type Pair struct {
	Cert    *x509.Certificate
	CertPEM []byte
	KeyPEM  []byte

	key crypto.Signer
}

// Alone is the certificate of the pair in PEM, without those that follow it.
func (p Pair) Alone() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: p.Cert.Raw})
}

// ParsePair reads a pair and refuses a key that is not the certificate's. Of a
// chain the first certificate counts.
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

// ParseCert reads the first certificate of PEM data.
func ParseCert(data []byte) (*x509.Certificate, error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == certificateBlock {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, errors.New("no certificate in PEM data")
}

// Reencode returns the pair as files that contain its certificates and its key and nothing else: text around and between
// the PEM blocks, which could mean something to another program, is left out. The key must be the first certificate's.
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

// ReencodeCerts returns the certificates of PEM data, at least one, and nothing else of it.
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

// Authority describes a certificate authority to be made.
type Authority struct {
	Name      string        // common name
	Algorithm Algorithm     // default ECDSA-P256
	Lifetime  time.Duration // default AuthorityLifetime
}

// NewAuthority makes a self-signed authority that is valid from now.
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
		NotAfter:              now.Add(orElse(a.Lifetime, AuthorityLifetime)).UTC(),
		KeyUsage:              usageOf(key.Public()) | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true, // it signs leaves and no other authority
	}
	cert, certPEM, err := sign(template, template, key.Public(), key)
	if err != nil {
		return Pair{}, err
	}
	return paired(cert, certPEM, key)
}

// paired is a certificate with its key.
func paired(cert *x509.Certificate, certPEM []byte, key crypto.Signer) (Pair, error) {
	keyPEM, err := encodeKey(key)
	return Pair{Cert: cert, CertPEM: certPEM, KeyPEM: keyPEM, key: key}, err
}

// Leaf describes a certificate to be issued. With Names or IPs it serves; with
// a User it is a client certificate; it may be both.
type Leaf struct {
	User      string   // common name
	Groups    []string // organizations
	Names     []string // DNS names
	IPs       []net.IP
	Algorithm Algorithm     // default ECDSA-P256
	Lifetime  time.Duration // default LeafLifetime; never beyond the authority's end
	Client    bool          // may be used by a client
}

// Issue signs a new leaf with a new key.
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

// IssueFor signs a new leaf for a key that another program holds.
func (p Pair) IssueFor(public crypto.PublicKey, l Leaf, now time.Time) (*x509.Certificate, []byte, error) {
	if p.key == nil || !p.Cert.IsCA {
		return nil, nil, fmt.Errorf("issue certificate for %q: the issuer is not an authority with a key", l.User)
	}
	until := now.Add(orElse(l.Lifetime, LeafLifetime))
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

// usageOf is what a key can do: only RSA encrypts other keys.
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
