package pki

import (
	"bytes"
	"testing"
	"time"
)

// FuzzPair: whatever a tenant's Secret has in the place of an authority is refused, or becomes files of PEM alone that are the same pair.
func FuzzPair(f *testing.F) {
	f.Add([]byte("kind: Policy\n---\n"), []byte(""))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN EC PRIVATE KEY-----\nMAA=\n-----END EC PRIVATE KEY-----\n"))
	for _, algorithm := range []Algorithm{"", "RSA-2048"} {
		ca, err := NewAuthority(Authority{Name: "ca", Algorithm: algorithm}, time.Now())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(ca.CertPEM, ca.KeyPEM)
		f.Add(append([]byte("a: b\n"), append(ca.CertPEM, ca.CertPEM...)...), append([]byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"), ca.KeyPEM...))
	}
	f.Fuzz(func(t *testing.T, certificate, private []byte) {
		_, _ = ReencodeCerts(certificate)
		_, _, _ = ReencodeKey(private)
		cert, key, err := Reencode(certificate, private)
		if err != nil {
			return
		}
		cert2, key2, err := Reencode(cert, key)
		if err != nil || !bytes.Equal(cert, cert2) || !bytes.Equal(key, key2) {
			t.Errorf("the pair is another one when it is read again: %v", err)
		}
		if !bytes.HasPrefix(cert, []byte("-----BEGIN CERTIFICATE-----\n")) || !bytes.HasSuffix(cert, []byte("-----END CERTIFICATE-----\n")) {
			t.Errorf("it is more than PEM: %q", cert)
		}
	})
}
