package webhook

import (
	"bytes"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
)

// FL-04: the life of the certificate: made, kept, renewed, and the authority replaced without a gap.
func TestRenew(t *testing.T) {
	start := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	local := pki.Leaf{User: "w", IPs: []net.IP{net.ParseIP("127.0.0.1")}}
	service := pki.Leaf{User: "w", Names: []string{"slipway-webhook.slipway-system.svc"}}
	first, changed, err := renew(nil, local, start)
	if err != nil || !changed {
		t.Fatalf("nothing there: changed %t, %v", changed, err)
	}
	garbage := first.data()
	garbage["ca.crt"] = []byte("x")
	halfLost := first.data()
	delete(halfLost, "tls.key")
	tests := map[string]struct {
		reason              string
		data                map[string][]byte
		want                pki.Leaf
		at                  time.Time
		newCA, newLeaf, old bool
	}{
		"the next day":    {"nothing is due", first.data(), local, start.AddDate(0, 0, 1), false, false, false},
		"other address":   {"the names must fit", first.data(), service, start.AddDate(0, 0, 1), false, true, false},
		"nine months":     {"a leaf lives a year", first.data(), local, start.AddDate(0, 9, 0), false, true, false},
		"eight years":     {"an authority lives ten; the old one stays trusted", first.data(), local, start.AddDate(8, 0, 0), true, true, true},
		"unreadable CA":   {"made anew, and nothing kept", garbage, local, start, true, true, false},
		"lost key of TLS": {"issued again by the same authority", halfLost, local, start, false, true, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, changed, err := renew(tt.data, tt.want, tt.at)
			if err != nil {
				t.Fatal(err)
			}
			if changed != (tt.newCA || tt.newLeaf) {
				t.Errorf("%s: changed %t", tt.reason, changed)
			}
			if same := got.ca.Cert.Equal(first.ca.Cert); same == tt.newCA {
				t.Errorf("%s: same authority %t", tt.reason, same)
			}
			if same := got.leaf.Cert.Equal(first.leaf.Cert); same == tt.newLeaf {
				t.Errorf("%s: same leaf %t", tt.reason, same)
			}
			if kept := bytes.Contains(got.bundle, first.ca.CertPEM); tt.newCA && kept != tt.old {
				t.Errorf("%s: old authority trusted %t", tt.reason, kept)
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(got.bundle)
			if _, err := got.leaf.Cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: tt.at}); err != nil {
				t.Errorf("%s: the leaf is not trusted: %v", tt.reason, err)
			}
		})
	}
}

// The second replacement forgets the authority before the last.
func TestRenewKeepsOneOldAuthority(t *testing.T) {
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	leaf := pki.Leaf{User: "w", IPs: []net.IP{net.ParseIP("127.0.0.1")}}
	data := map[string][]byte(nil)
	for range 4 {
		kept, changed, err := renew(data, leaf, at)
		if err != nil || !changed {
			t.Fatalf("changed %t, %v", changed, err)
		}
		data, at = kept.data(), at.AddDate(8, 0, 0)
	}
	if n := bytes.Count(data["ca.crt"], []byte("BEGIN CERTIFICATE")); n != 2 {
		t.Errorf("got %d authorities, want 2", n)
	}
}
