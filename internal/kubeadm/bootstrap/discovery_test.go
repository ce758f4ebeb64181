package bootstrap

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

var discoveryNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const discoveryToken = "abcdef.0123456789abcdef"

// KB-08, KB-09, KB-12, KB-23
func TestComplete(t *testing.T) {
	facts := tokenFacts{Token: discoveryToken, Endpoint: "10.0.0.1:6443", CACertHashes: []string{"sha256:00"}}
	mine := bootstrapv1.BootstrapTokenDiscovery{Token: "fedcba.0123456789abcdef", APIServerEndpoint: "x:1", CACertHashes: []string{"sha256:11"}}
	file := bootstrapv1.Discovery{File: bootstrapv1.FileDiscovery{KubeConfigPath: "/x"}, TLSBootstrapToken: discoveryToken}
	cases := map[string]struct {
		reason string
		in     bootstrapv1.Discovery
		facts  tokenFacts
		want   bootstrapv1.Discovery
	}{
		"unset": {"all is filled in, the CA pinned", bootstrapv1.Discovery{}, facts, bootstrapv1.Discovery{
			BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: discoveryToken, APIServerEndpoint: "10.0.0.1:6443", CACertHashes: []string{"sha256:00"}}}},
		"as given": {"the user's values stay", bootstrapv1.Discovery{BootstrapToken: mine}, facts, bootstrapv1.Discovery{BootstrapToken: mine}},
		"no hashes": {"nothing to pin by", bootstrapv1.Discovery{}, tokenFacts{Token: discoveryToken, Endpoint: "a:1"}, bootstrapv1.Discovery{
			BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: discoveryToken, APIServerEndpoint: "a:1", UnsafeSkipCAVerification: ptr(true)}}},
		"asked to skip": {"the user does not want the CA pinned",
			bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{UnsafeSkipCAVerification: ptr(true)}}, facts,
			bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: discoveryToken, APIServerEndpoint: "10.0.0.1:6443", UnsafeSkipCAVerification: ptr(true)}}},
		"asked not to skip": {"which is what pinning is",
			bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{UnsafeSkipCAVerification: ptr(false)}}, facts,
			bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: discoveryToken, APIServerEndpoint: "10.0.0.1:6443", CACertHashes: []string{"sha256:00"}, UnsafeSkipCAVerification: ptr(false)}}},
		"file": {"is left alone", file, facts, file},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.in.DeepCopy()
			if diff := cmp.Diff(tc.want, tokenComplete(tc.in, tc.facts)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(*before, tc.in); diff != "" {
				t.Errorf("the argument is not changed (-want +got):\n%s", diff)
			}
		})
	}
	if needsToken(file) || tokenOf(file) != "" {
		t.Error("file discovery has no bootstrap token")
	}
	if !needsToken(bootstrapv1.Discovery{}) || needsToken(bootstrapv1.Discovery{BootstrapToken: mine}) {
		t.Error("a token is needed exactly where none was chosen")
	}
}

func discoveryCertificate(t *testing.T) (bundle []byte, pin string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: discoveryNow}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(public)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), "sha256:" + hex.EncodeToString(sum[:])
}

// KB-09
func TestHashes(t *testing.T) {
	a, pinA := discoveryCertificate(t)
	b, pinB := discoveryCertificate(t)
	key := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("x")})
	got, err := tokenHashes(append(append(append([]byte{}, a...), key...), b...))
	if diff := cmp.Diff([]string{pinA, pinB}, got); diff != "" || err != nil {
		t.Errorf("every certificate of the bundle is pinned (-want +got): %v\n%s", err, diff)
	}
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})
	for name, in := range map[string][]byte{"empty": nil, "no certificate": key, "broken": broken} {
		if got, err := tokenHashes(in); err == nil {
			t.Errorf("%s: want an error, never an empty list of pins, got %v", name, got)
		}
	}
}

// KB-10
func TestRefresh(t *testing.T) {
	ttl := 12 * time.Minute
	cases := map[string]struct {
		state TokenState
		want  tokenNeed
	}{
		"missing":        {TokenState{}, tokenCreate},
		"fresh":          {TokenState{Found: true, Expires: discoveryNow.Add(ttl)}, tokenNothing},
		"exactly 5/6":    {TokenState{Found: true, Expires: discoveryNow.Add(10 * time.Minute)}, tokenNothing},
		"less than 5/6":  {TokenState{Found: true, Expires: discoveryNow.Add(10*time.Minute - 1)}, tokenExtend},
		"expired":        {TokenState{Found: true, Expires: discoveryNow.Add(-time.Hour)}, tokenExtend},
		"without an end": {TokenState{Found: true}, tokenNothing},
	}
	for name, tc := range cases {
		need, again := tokenRefresh(tc.state, discoveryNow, ttl)
		if need != tc.want || again != 4*time.Minute {
			t.Errorf("%s: got %d and %s, want %d and a third of the TTL", name, need, again, tc.want)
		}
	}
}

// KB-11
func TestRotate(t *testing.T) {
	ttl := 12 * time.Minute
	cases := map[string]struct {
		state TokenState
		want  tokenNeed
		again time.Duration
	}{
		"missing":        {TokenState{}, tokenReplace, 6 * time.Minute},
		"fresh":          {TokenState{Found: true, Expires: discoveryNow.Add(ttl)}, tokenNothing, 6 * time.Minute},
		"just before":    {TokenState{Found: true, Expires: discoveryNow.Add(7 * time.Minute)}, tokenNothing, time.Minute},
		"half":           {TokenState{Found: true, Expires: discoveryNow.Add(6 * time.Minute)}, tokenReplace, 6 * time.Minute},
		"expired":        {TokenState{Found: true, Expires: discoveryNow.Add(-1)}, tokenReplace, 6 * time.Minute},
		"without an end": {TokenState{Found: true}, tokenNothing, 0},
	}
	for name, tc := range cases {
		need, again := tokenRotate(tc.state, discoveryNow, ttl)
		if need != tc.want || again != tc.again {
			t.Errorf("%s: got %d and %s, want %d and %s", name, need, again, tc.want, tc.again)
		}
	}
}

// KB-09
func TestSecret(t *testing.T) {
	owner := TokenOwner{Namespace: "ns", Name: "worker-1"}
	got := TokenSecret(discoveryToken, owner, TokenLifetime{From: discoveryNow, TTL: defaultTTL})
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef",
			Labels: map[string]string{"bootstrap.slipway.dev/kubeadmconfig": owner.Label()}},
		Type: "bootstrap.kubernetes.io/token",
		Data: map[string][]byte{
			"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"), "expiration": []byte("2026-01-02T03:19:05Z"),
			"usage-bootstrap-signing": []byte("true"), "usage-bootstrap-authentication": []byte("true"),
			"auth-extra-groups": []byte("system:bootstrappers:kubeadm:default-node-token"),
			"description":       []byte("for KubeadmConfig ns/worker-1"),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(owner.Label()) > 63 || owner.Label() == (TokenOwner{Namespace: "ns", Name: "worker-2"}).Label() {
		t.Error("the label is short enough, and another owner has another")
	}
	if !tokenValid(discoveryToken) || tokenValid("abcdef") {
		t.Error("a token is id.secret")
	}
}

func TestStateOf(t *testing.T) {
	with := func(data map[string][]byte) *corev1.Secret { return &corev1.Secret{Data: data} }
	cases := map[string]struct {
		in   *corev1.Secret
		want TokenState
	}{
		"none":       {nil, TokenState{}},
		"no end":     {with(nil), TokenState{Found: true}},
		"end":        {with(map[string][]byte{"expiration": []byte("2026-01-02T03:04:05Z")}), TokenState{Found: true, Expires: discoveryNow}},
		"unreadable": {with(map[string][]byte{"expiration": []byte("soon")}), TokenState{Found: true, Expires: time.Unix(0, 0)}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, stateOf(tc.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
