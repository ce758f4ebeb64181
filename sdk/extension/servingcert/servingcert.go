// Package servingcert generates a serving certificate with its own certificate authority (CA). The CA signs only this
// certificate, and its key is discarded. The package writes no files. See [New].
package servingcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// validity is the validity period. A server that runs longer must be restarted in time.
const validity = 365 * 24 * time.Hour

// Certificate is a certificate with its key and its CA, PEM-encoded.
type Certificate struct {
	CA, Certificate, Key []byte
}

// New generates a certificate for host names and addresses; default: localhost, 127.0.0.1, ::1 and the name of this
// machine. It is valid for one year, and also usable as a client certificate with the first host as the common name.
func New(hosts ...string) (Certificate, error) {
	if len(hosts) == 0 {
		hosts = []string{"localhost", "127.0.0.1", "::1"}
		if name, err := os.Hostname(); err == nil {
			hosts = append(hosts, name)
		}
	}
	authority := template("extension-ca")
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificate{}, fmt.Errorf("making a key: %w", err)
	}
	ca, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return Certificate{}, fmt.Errorf("making a certificate authority: %w", err)
	}
	leaf := template(hosts[0])
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, h)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificate{}, fmt.Errorf("making a key: %w", err)
	}
	certificate, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	if err != nil {
		return Certificate{}, fmt.Errorf("making a certificate: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Certificate{}, fmt.Errorf("encoding a key: %w", err)
	}
	return Certificate{CA: encode("CERTIFICATE", ca), Certificate: encode("CERTIFICATE", certificate), Key: encode("PRIVATE KEY", der)}, nil
}

func template(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		serial = big.NewInt(time.Now().UnixNano()) // rand does not fail since Go 1.24
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(validity),
	}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
