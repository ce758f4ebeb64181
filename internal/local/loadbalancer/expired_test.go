package loadbalancer_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/local/loadbalancer"
)

// expire has an API server show a certificate that is over from now on.
func (s *apiServer) expire(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"}, NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(0, 0, -1)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	s.expired.Store(&tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: key})
}

// Clients get to members whose certificate they accept, as long as there is one. Where there is none, they get to one that says so to them.
func TestExpiredCertificate(t *testing.T) {
	servers := []*apiServer{newAPIServer(t, "cp-1"), newAPIServer(t, "cp-2")}
	var members []loadbalancer.Member
	for _, s := range servers {
		members = append(members, s.member(false))
	}
	b, url := serve(t, members...)
	until(t, "both answer", answering(b, "cp-1", "cp-2"))
	c := client(servers, true)
	servers[0].expire(t)
	until(t, "one does not", answering(b, "cp-2"))
	if got := b.State().Problems["cp-1"]; !strings.HasPrefix(got, "the certificate of its API server expired on ") {
		t.Errorf("its problem: %q", got)
	}
	for range 6 {
		if got, err := get(c, url); err != nil || got != "cp-2" {
			t.Errorf("%q, %v", got, err)
		}
	}
	servers[1].expire(t)
	until(t, "none does", answering(b))
	blind := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // as a person who looks for the reason
	if got, err := get(blind, url); err != nil || !strings.HasPrefix(got, "cp-") {
		t.Errorf("without verification: %q, %v", got, err)
	}
}
