package pki_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func folder(t *testing.T) (pki.Folder, *clock) {
	t.Helper()
	c := &clock{now: start}
	return pki.Folder{Path: t.TempDir(), Now: c.Now}, c
}

func authority(t *testing.T, f pki.Folder) pki.Pair {
	t.Helper()
	ca, err := f.Authority("ca", pki.Authority{Name: "test-ca"})
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// SE-03: ten years for an authority, one for a leaf, unless something else is asked for.
func TestLifetimes(t *testing.T) {
	f, _ := folder(t)
	ca := authority(t, f)
	if got, want := ca.Cert.NotAfter, start.Add(pki.AuthorityLifetime); !got.Equal(want) {
		t.Errorf("authority ends %s, want %s", got, want)
	}
	leaf, err := ca.Issue(pki.Leaf{User: "u", Client: true}, start)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := leaf.Cert.NotAfter, start.Add(pki.LeafLifetime); !got.Equal(want) {
		t.Errorf("leaf ends %s, want %s", got, want)
	}
	late, err := ca.Issue(pki.Leaf{User: "u", Client: true}, ca.Cert.NotAfter.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if !late.Cert.NotAfter.Equal(ca.Cert.NotAfter) {
		t.Errorf("a leaf outlives its authority: %s after %s", late.Cert.NotAfter, ca.Cert.NotAfter)
	}
}

// SE-03: the algorithms that kubeadm names.
func TestAlgorithms(t *testing.T) {
	bits := map[pki.Algorithm]int{pki.RSA2048: 2048, pki.ECDSAP256: 256, pki.ECDSAP384: 384, "": 256}
	for algorithm, want := range bits {
		ca, err := pki.NewAuthority(pki.Authority{Name: "x", Algorithm: algorithm}, start)
		if err != nil {
			t.Errorf("%q: %v", algorithm, err)
			continue
		}
		got := 0
		switch k := ca.Cert.PublicKey.(type) {
		case *rsa.PublicKey:
			got = k.N.BitLen()
		case *ecdsa.PublicKey:
			got = k.Params().BitSize
		}
		if got != want {
			t.Errorf("%q: %d bits, want %d", algorithm, got, want)
		}
		if _, err := pki.ParsePair(ca.CertPEM, ca.KeyPEM); err != nil {
			t.Errorf("%q: the pair cannot be read back: %v", algorithm, err)
		}
	}
	if _, err := pki.NewAuthority(pki.Authority{Algorithm: "DSA"}, start); err == nil {
		t.Error("an unknown algorithm was accepted")
	}
}

func TestLeafIsIssuedAgainWhenItMustBe(t *testing.T) {
	leaf := pki.Leaf{User: "server", Names: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
	tests := map[string]struct {
		reason string
		change func(*testing.T, pki.Folder, *clock, *pki.Pair, *pki.Leaf)
		want   bool
	}{
		"nothing changed": {
			reason: "a good certificate is kept",
			change: func(*testing.T, pki.Folder, *clock, *pki.Pair, *pki.Leaf) {},
		},
		"half of its life is over": {
			reason: "more than a third is left",
			change: func(_ *testing.T, _ pki.Folder, c *clock, _ *pki.Pair, _ *pki.Leaf) {
				c.now = start.Add(pki.LeafLifetime / 2)
			},
		},
		"two thirds of its life are over": {
			reason: "it is renewed well before it expires",
			change: func(_ *testing.T, _ pki.Folder, c *clock, _ *pki.Pair, _ *pki.Leaf) {
				c.now = start.Add(pki.LeafLifetime * 2 / 3)
			},
			want: true,
		},
		"it has expired": {
			reason: "the machine was off for long",
			change: func(_ *testing.T, _ pki.Folder, c *clock, _ *pki.Pair, _ *pki.Leaf) {
				c.now = start.Add(2 * pki.LeafLifetime)
			},
			want: true,
		},
		"another address": {
			reason: "the server listens elsewhere now",
			change: func(_ *testing.T, _ pki.Folder, _ *clock, _ *pki.Pair, l *pki.Leaf) {
				l.IPs = []net.IP{net.IPv4(127, 0, 0, 2)}
			},
			want: true,
		},
		"another group": {
			reason: "the identity changed",
			change: func(_ *testing.T, _ pki.Folder, _ *clock, _ *pki.Pair, l *pki.Leaf) { l.Groups = []string{"g"} },
			want:   true,
		},
		"another authority": {
			reason: "clients would not trust it",
			change: func(t *testing.T, _ pki.Folder, c *clock, ca *pki.Pair, _ *pki.Leaf) {
				other, err := pki.NewAuthority(pki.Authority{Name: "test-ca"}, c.now)
				if err != nil {
					t.Fatal(err)
				}
				*ca = other
			},
			want: true,
		},
		"a crash between the two files": {
			reason: "key and certificate do not fit together",
			change: func(t *testing.T, f pki.Folder, c *clock, ca *pki.Pair, l *pki.Leaf) {
				other, err := ca.Issue(*l, c.now)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(f.Key("server"), other.KeyPEM, 0o600); err != nil {
					t.Fatal(err)
				}
			},
			want: true,
		},
		"an empty file": {
			reason: "the disk was full",
			change: func(t *testing.T, f pki.Folder, _ *clock, _ *pki.Pair, _ *pki.Leaf) {
				if err := os.Truncate(f.Cert("server"), 0); err != nil {
					t.Fatal(err)
				}
			},
			want: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, c := folder(t)
			ca, l := authority(t, f), leaf
			if _, _, err := f.Leaf("server", ca, l); err != nil {
				t.Fatal(err)
			}
			test.change(t, f, c, &ca, &l)
			pair, changed, err := f.Leaf("server", ca, l)
			if err != nil {
				t.Fatal(err)
			}
			if changed != test.want {
				t.Errorf("issued again: %v, want %v: %s", changed, test.want, test.reason)
			}
			if pki.NeedsReissue(pair, ca, l, c.now) {
				t.Error("what is there now is stale")
			}
		})
	}
}

func TestAuthorityIsRenewedWithItsKey(t *testing.T) {
	f, c := folder(t)
	ca := authority(t, f)
	leaf, err := ca.Issue(pki.Leaf{User: "u", Client: true}, start)
	if err != nil {
		t.Fatal(err)
	}
	c.now = start.Add(pki.AuthorityLifetime / 10 * 8)
	if kept := authority(t, f); !kept.Cert.Equal(ca.Cert) {
		t.Error("renewed long before its end")
	}
	c.now = start.Add(pki.AuthorityLifetime / 100 * 95)
	renewed := authority(t, f)
	if renewed.Cert.Equal(ca.Cert) || !renewed.Cert.NotAfter.After(ca.Cert.NotAfter) {
		t.Errorf("not renewed: ends %s", renewed.Cert.NotAfter)
	}
	if err := leaf.Cert.CheckSignatureFrom(renewed.Cert); err != nil {
		t.Errorf("a leaf issued before is not valid any more: %v", err)
	}
}

func TestDamagedAuthorityIsNotReplaced(t *testing.T) {
	f, _ := folder(t)
	authority(t, f)
	if err := os.WriteFile(f.Key("ca"), []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Authority("ca", pki.Authority{Name: "test-ca"}); err == nil {
		t.Error("a new authority took the place of a damaged one: every client would be locked out")
	}
}

func TestKeysAreForTheirOwnerOnly(t *testing.T) {
	f, _ := folder(t)
	ca := authority(t, f)
	if _, _, err := f.Leaf("leaf", ca, pki.Leaf{User: "u", Client: true}); err != nil {
		t.Fatal(err)
	}
	if err := f.SigningKey("sa", ""); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(f.Key("leaf"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Leaf("leaf", ca, pki.Leaf{User: "u", Client: true}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca", "leaf", "sa"} {
		info, err := os.Stat(f.Key(name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", f.Key(name), info.Mode().Perm())
		}
	}
}

func TestUsages(t *testing.T) {
	f, _ := folder(t)
	ca := authority(t, f)
	tests := map[string]struct {
		leaf pki.Leaf
		want []x509.ExtKeyUsage
	}{
		"client": {pki.Leaf{User: "u", Client: true}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
		"server": {pki.Leaf{User: "u", Names: []string{"n"}}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}},
		"both": {
			pki.Leaf{User: "u", Names: []string{"n"}, Client: true},
			[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		},
	}
	for name, test := range tests {
		pair, err := ca.Issue(test.leaf, start)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, pair.Cert.ExtKeyUsage); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A certificate can do what its key can, and what it is for: ECDSA keys encrypt no other keys, and an authority signs no other authority.
func TestKeyUsages(t *testing.T) {
	const signs, encrypts, issues = x509.KeyUsageDigitalSignature, x509.KeyUsageKeyEncipherment, x509.KeyUsageCertSign
	for algorithm, want := range map[pki.Algorithm]x509.KeyUsage{
		"": signs, pki.ECDSAP256: signs, pki.ECDSAP384: signs, pki.RSA2048: signs | encrypts,
	} {
		ca, err := pki.NewAuthority(pki.Authority{Name: "x", Algorithm: algorithm}, start)
		if err != nil {
			t.Fatal(err)
		}
		if got := ca.Cert.KeyUsage; got != want|issues {
			t.Errorf("authority, %q: usage %b, want %b", algorithm, got, want|issues)
		}
		if c := ca.Cert; !c.BasicConstraintsValid || !c.IsCA || c.MaxPathLen != 0 || !c.MaxPathLenZero {
			t.Errorf("authority, %q: valid %t, authority %t, path length %d (given: %t), want 0 and given",
				algorithm, c.BasicConstraintsValid, c.IsCA, c.MaxPathLen, c.MaxPathLenZero)
		}
		leaf, err := ca.Issue(pki.Leaf{User: "u", Client: true, Algorithm: algorithm}, start)
		if err != nil {
			t.Fatal(err)
		}
		if got := leaf.Cert.KeyUsage; got != want || leaf.Cert.IsCA {
			t.Errorf("leaf, %q: usage %b, want %b; authority %t", algorithm, got, want, leaf.Cert.IsCA)
		}
	}
}

func TestKubeconfigs(t *testing.T) {
	f, _ := folder(t)
	ca := authority(t, f)
	pair, _, err := f.Leaf("admin", ca, pki.Leaf{User: "admin", Client: true})
	if err != nil {
		t.Fatal(err)
	}
	access := pki.Access{Context: "slipway", User: "admin", Server: "https://127.0.0.1:6440", CA: ca.CertPEM}
	embedded, err := access.Embedded(pair)
	if err != nil {
		t.Fatal(err)
	}
	named, err := access.Files(f.Cert("admin"), f.Key("admin"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"embedded": embedded, "files": named} {
		c, err := clientcmd.RESTConfigFromKubeConfig(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.Host != access.Server || string(c.CAData) != string(ca.CertPEM) {
			t.Errorf("%s: host %s", name, c.Host)
		}
		if (name == "embedded") != (len(c.KeyData) > 0) || (name == "files") != (c.KeyFile == f.Key("admin")) {
			t.Errorf("%s: key file %q, %d bytes of key", name, c.KeyFile, len(c.KeyData))
		}
	}
}

// What surrounds certificates and keys, a configuration of another program perhaps, is not written to files.
func TestReencode(t *testing.T) { // SE-02
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	other, err := pki.NewAuthority(pki.Authority{Name: "other"}, now)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(edwards)
	if err != nil {
		t.Fatal(err)
	}
	if _, key, err := pki.ReencodeKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})); err != nil || len(key) == 0 {
		t.Errorf("Ed25519: %v", err)
	}
	for _, algorithm := range []pki.Algorithm{pki.ECDSAP256, pki.RSA2048} {
		ca, err := pki.NewAuthority(pki.Authority{Name: "a", Algorithm: algorithm}, now)
		if err != nil {
			t.Fatal(err)
		}
		hostile := "kind: Policy\nrules: []\n---\n"
		cert, key, err := pki.Reencode([]byte(hostile+string(ca.CertPEM)+hostile+string(other.CertPEM)+hostile), []byte(hostile+string(ca.KeyPEM)+hostile))
		if err != nil {
			t.Fatal(err)
		}
		if want := string(ca.CertPEM) + string(other.CertPEM); string(cert) != want {
			t.Errorf("%s: got\n%s\nwant\n%s", algorithm, cert, want)
		}
		if string(key) != string(ca.KeyPEM) {
			t.Errorf("%s: got\n%s\nwant\n%s", algorithm, key, ca.KeyPEM)
		}
		public, private, err := pki.ReencodeKey([]byte(hostile + string(ca.KeyPEM) + hostile))
		if err != nil || string(private) != string(ca.KeyPEM) || !strings.HasPrefix(string(public), "-----BEGIN PUBLIC KEY") {
			t.Errorf("%s: %v\n%s%s", algorithm, err, public, private)
		}
		if _, _, err := pki.Reencode(other.CertPEM, ca.KeyPEM); err == nil {
			t.Error("a key of another certificate is written")
		}
	}
}
