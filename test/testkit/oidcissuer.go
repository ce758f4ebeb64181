package testkit

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
)

// oidcAudience and OIDCSubject are claims of the tokens. OIDCPrefix precedes the subject in the user name.
const oidcAudience, OIDCSubject, OIDCPrefix = "demo", "jane", "oidc:"

// OIDCIssuer is an OpenID Connect provider on loopback. It serves its metadata and signing key over TLS, and signs tokens.
type OIDCIssuer struct {
	*httptest.Server
	// Requests is the number of requests.
	Requests atomic.Int32
	key      *rsa.PrivateKey
}

// StartOIDCIssuer starts a provider that stops when the test ends. Tests of API servers that trust token issuers (field
// authentication of a HostedControlPlane and of the configuration file) use it.
func StartOIDCIssuer(t testing.TB) *OIDCIssuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s := &OIDCIssuer{key: key}
	respond := func(w http.ResponseWriter, body any) {
		s.Requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, map[string]any{"issuer": s.URL, "jwks_uri": s.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		encode := base64.RawURLEncoding.EncodeToString
		respond(w, map[string]any{"keys": []map[string]string{{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "k", "n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	s.Server = httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	return s
}

// Trusted returns a JWTAuthenticator that trusts this provider.
func (s *OIDCIssuer) Trusted() hostedv1.JWTAuthenticator {
	prefix := OIDCPrefix
	return hostedv1.JWTAuthenticator{
		Issuer: hostedv1.JWTIssuer{
			URL: s.URL, Audiences: []string{oidcAudience},
			CertificateAuthority: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})),
		},
		ClaimValidationRules: []hostedv1.ClaimValidationRule{{Expression: "claims.sub.size() < 100", Message: "too long"}},
		ClaimMappings:        hostedv1.ClaimMappings{Username: hostedv1.PrefixedClaimOrExpression{Claim: "sub", Prefix: &prefix}},
	}
}

// Token returns an ID token with the given issuer in its claims, signed with the key of this provider.
func (s *OIDCIssuer) Token(t testing.TB, issuer string) string {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	now := time.Now()
	claims := fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":%q,"iat":%d,"exp":%d}`, issuer, oidcAudience, OIDCSubject, now.Unix(), now.Add(time.Hour).Unix())
	text := encode([]byte(`{"alg":"RS256","kid":"k","typ":"JWT"}`)) + "." + encode([]byte(claims))
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + encode(signature)
}
