package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// Algorithm names a key algorithm, with the values of encryptionAlgorithm in kubeadm's ClusterConfiguration. Package
// kubeadm/secrets reads it from the ClusterConfiguration.
type Algorithm string

// Key algorithms. The empty Algorithm means ECDSAP256.
const (
	RSA2048   Algorithm = "RSA-2048"
	RSA3072   Algorithm = "RSA-3072"
	RSA4096   Algorithm = "RSA-4096"
	ecdsaP256 Algorithm = "ECDSA-P256"
	ECDSAP384 Algorithm = "ECDSA-P384"
)

func newKey(a Algorithm) (crypto.Signer, error) {
	switch a {
	case RSA2048:
		return rsa.GenerateKey(rand.Reader, 2048)
	case RSA3072:
		return rsa.GenerateKey(rand.Reader, 3072)
	case RSA4096:
		return rsa.GenerateKey(rand.Reader, 4096)
	case "", ecdsaP256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case ECDSAP384:
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	}
	return nil, fmt.Errorf("unknown key algorithm %q; use %s, %s, %s, %s or %s", a, RSA2048, RSA3072, RSA4096, ecdsaP256, ECDSAP384)
}

// encodeKey encodes RSA keys as PKCS #1 and ECDSA keys as SEC 1, which all Kubernetes components can read.
// Ed25519 keys only exist as PKCS #8.
func encodeKey(key crypto.Signer) ([]byte, error) {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)}), nil
	case *ecdsa.PrivateKey:
		der, err := x509.MarshalECPrivateKey(k)
		if err != nil {
			return nil, err
		}
		return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
	case ed25519.PrivateKey:
		der, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			return nil, err
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
	}
	return nil, fmt.Errorf("key type %T is not supported", key)
}

// parseKey parses PKCS #1, SEC 1 and PKCS #8. It skips parameters before the key.
func parseKey(data []byte) (crypto.Signer, error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "RSA PRIVATE KEY":
			return x509.ParsePKCS1PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			return x509.ParseECPrivateKey(block.Bytes)
		case "PRIVATE KEY":
			key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return nil, err
			}
			if s, ok := key.(crypto.Signer); ok {
				return s, nil
			}
			return nil, fmt.Errorf("key type %T cannot sign", key)
		}
	}
	return nil, errors.New("no private key in PEM data")
}

// SigningKey creates a key pair for service account tokens, both in PEM, for [Folder] and for the Secrets of workload
// clusters.
func SigningKey(a Algorithm) (public, private []byte, err error) {
	key, err := newKey(a)
	if err != nil {
		return nil, nil, err
	}
	private, err = encodeKey(key)
	if err != nil {
		return nil, nil, err
	}
	public, err = publicKey(private)
	return public, private, err
}

// ReencodeKey returns a private key and its public key, both in PEM, without other content, for keys in Secrets that a
// user provided. Package kubeadm/secrets calls it.
func ReencodeKey(private []byte) (public, key []byte, err error) {
	signer, err := parseKey(private)
	if err != nil {
		return nil, nil, err
	}
	if key, err = encodeKey(signer); err != nil {
		return nil, nil, err
	}
	public, err = publicKey(key)
	return public, key, err
}

// publicKey returns the public key of a private key, both in PEM.
func publicKey(private []byte) ([]byte, error) {
	key, err := parseKey(private)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}
