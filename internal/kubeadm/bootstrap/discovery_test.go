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
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

var discoveryNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const discoveryToken = "abcdef.0123456789abcdef"

// KB-08, KB-09, KB-12, KB-23
func TestComplete(t *testing.T) {
	facts := discoveryValues{Token: discoveryToken, Endpoint: "10.0.0.1:6443", CACertHashes: []string{"sha256:00"}}
	mine := bootstrapv1.BootstrapTokenDiscovery{Token: "fedcba.0123456789abcdef", APIServerEndpoint: "x:1", CACertHashes: []string{"sha256:11"}}
	file := bootstrapv1.Discovery{File: bootstrapv1.FileDiscovery{KubeConfigPath: "/x"}, TLSBootstrapToken: discoveryToken}
	cases := map[string]struct {
		reason string
		in     bootstrapv1.Discovery
		facts  discoveryValues
		want   bootstrapv1.Discovery
	}{
		"unset": {"all is filled in, the CA pinned", bootstrapv1.Discovery{}, facts, bootstrapv1.Discovery{
			BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: discoveryToken, APIServerEndpoint: "10.0.0.1:6443", CACertHashes: []string{"sha256:00"}}}},
		"as given": {"the user's values stay", bootstrapv1.Discovery{BootstrapToken: mine}, facts, bootstrapv1.Discovery{BootstrapToken: mine}},
		"no hashes": {"nothing to pin by", bootstrapv1.Discovery{}, discoveryValues{Token: discoveryToken, Endpoint: "a:1"}, bootstrapv1.Discovery{
			BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: discoveryToken, APIServerEndpoint: "a:1", UnsafeSkipCAVerification: ptr.To(true)}}},
		"asked to skip": {"the user does not want the CA pinned",
			bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{UnsafeSkipCAVerification: ptr.To(true)}}, facts,
			bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: discoveryToken, APIServerEndpoint: "10.0.0.1:6443", UnsafeSkipCAVerification: ptr.To(true)}}},
		"asked not to skip": {"which is what pinning is",
			bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{UnsafeSkipCAVerification: ptr.To(false)}}, facts,
			bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: discoveryToken, APIServerEndpoint: "10.0.0.1:6443", CACertHashes: []string{"sha256:00"}, UnsafeSkipCAVerification: ptr.To(false)}}},
		"file": {"is left alone", file, facts, file},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.in.DeepCopy()
			if diff := cmp.Diff(tc.want, completeDiscovery(tc.in, tc.facts)); diff != "" {
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
	got, err := caCertHashes(append(append(append([]byte{}, a...), key...), b...))
	if diff := cmp.Diff([]string{pinA, pinB}, got); diff != "" || err != nil {
		t.Errorf("every certificate of the bundle is pinned (-want +got): %v\n%s", err, diff)
	}
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})
	for name, in := range map[string][]byte{"empty": nil, "no certificate": key, "broken": broken} {
		if got, err := caCertHashes(in); err == nil {
			t.Errorf("%s: want an error, never an empty list of pins, got %v", name, got)
		}
	}
}
