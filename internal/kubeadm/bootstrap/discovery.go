package bootstrap

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// discoveryValues are the values that complete spec.joinConfiguration.discovery when the bootstrap data of a joining
// Machine is rendered. They are written to the data and, except for the token, never to the spec.
type discoveryValues struct {
	// Token as id.secret.
	Token string
	// Endpoint of the API server as host:port.
	Endpoint string
	// CACertHashes pin the cluster's CA, see [caCertHashes].
	CACertHashes []string
}

// needsToken reports whether the machine discovers by token and no token has been chosen yet. [decide] calls it before
// a token is chosen, and again when the token may have to be replaced.
func needsToken(in bootstrapv1.Discovery) bool {
	return !in.File.IsDefined() && in.BootstrapToken.Token == ""
}

// tokenOf returns the bootstrap token that the machine discovers by, or "" if it discovers by file.
func tokenOf(in bootstrapv1.Discovery) string {
	if in.File.IsDefined() {
		return ""
	}
	return in.BootstrapToken.Token
}

// completeDiscovery returns in with missing values filled in. File discovery is returned unchanged. If there is no hash
// to pin the CA, verification of the CA is disabled. [render] calls it for the payload of a joining Machine.
func completeDiscovery(in bootstrapv1.Discovery, facts discoveryValues) bootstrapv1.Discovery {
	if in.File.IsDefined() {
		return in
	}
	token := &in.BootstrapToken
	if token.Token == "" {
		token.Token = facts.Token
	}
	if token.APIServerEndpoint == "" {
		token.APIServerEndpoint = facts.Endpoint
	}
	unsafe := token.UnsafeSkipCAVerification != nil && *token.UnsafeSkipCAVerification
	if len(token.CACertHashes) == 0 && !unsafe {
		token.CACertHashes = facts.CACertHashes
	}
	if len(token.CACertHashes) == 0 {
		token.UnsafeSkipCAVerification = new(true)
	}
	return in
}

// caCertHashes returns the pins of the certificates in a PEM bundle in kubeadm's format (sha256 of the public key),
// which kubeadm join compares with the CA of the API server. A bundle without certificates is an error. [decide] calls
// it to check the CA before a Machine joins, and [render] for the payload.
func caCertHashes(bundle []byte) ([]string, error) {
	var out []string
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parsing CA certificate: %w", err)
		}
		sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
		out = append(out, "sha256:"+hex.EncodeToString(sum[:]))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no certificate found in PEM data")
	}
	return out, nil
}
