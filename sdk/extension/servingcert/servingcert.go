// Package servingcert makes a serving certificate with a certificate authority of its own.
//
// Does: makes an authority that signs one certificate and is then forgotten: its key leaves this package never.
//
// Never: writes files.
//
// Read first: [New].
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

// validity of what is made: a server that runs longer is started again in between.
const validity = 365 * 24 * time.Hour

// Certificate is a certificate with its key and authority, each in PEM.
type Certificate struct {
	CA, Certificate, Key []byte
}

// New makes a certificate for names and addresses; none: localhost, 127.0.0.1, ::1 and the name of this machine. It is
// valid for a year, and is also good as a client certificate whose common name is the first host.
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
