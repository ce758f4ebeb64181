package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipwayhq/slipway/internal/fault"
)

func certificate(r request) certManagerCertificate {
	return certManagerCertificate{ObjectMeta: metav1.ObjectMeta{Name: "serving", Namespace: "acme-system"}, Spec: r}
}

func secretOf(c certManagerCertificate, out issuedCertificate) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{certificateName: c.Name, requestHash: c.Spec.hash()}},
		Data:       map[string][]byte{"tls.crt": out.Certificate, "tls.key": out.Key, "ca.crt": out.Authority},
	}
}

func mustIssue(t *testing.T, r request, authority *tls.Certificate, now time.Time) (issuedCertificate, *tls.Certificate) {
	t.Helper()
	out, err := issue(r, authority, now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(out.Certificate, out.Key)
	if err != nil {
		t.Fatal(err)
	}
	return out, &pair
}

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// CX-26: what is issued without cert-manager serves its names, by its own authority or by one of the cluster.
func TestIssue(t *testing.T) {
	ca := request{CommonName: "authority", IsCA: true, PrivateKey: &privateKey{Algorithm: "ECDSA", Size: 256}}
	_, authority := mustIssue(t, ca, nil, now)
	for name, tc := range map[string]struct {
		request   request
		authority *tls.Certificate
	}{
		"self-signed RSA": {request{DNSNames: []string{"a.ns.svc", "b.ns.svc"}}, nil},
		"of an authority": {request{DNSNames: []string{"a.ns.svc"}, PrivateKey: &privateKey{Algorithm: "Ed25519"}}, authority},
		"larger curve":    {request{DNSNames: []string{"a.ns.svc"}, PrivateKey: &privateKey{Algorithm: "ECDSA", Size: 384}}, authority},
	} {
		out, pair := mustIssue(t, tc.request, tc.authority, now)
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(out.Authority) {
			t.Fatalf("%s: no authority", name)
		}
		for _, dns := range tc.request.DNSNames {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: dns, Roots: roots, CurrentTime: now}); err != nil {
				t.Errorf("%s: %s: %v", name, dns, err)
			}
		}
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: "other", Roots: roots, CurrentTime: now}); err == nil {
			t.Errorf("%s: it serves any name", name)
		}
	}
	for name, r := range map[string]request{
		"no name":     {},
		"bad address": {IPAddresses: []string{"here"}},
		"small key":   {CommonName: "a", PrivateKey: &privateKey{Size: 512}},
		"large key":   {CommonName: "a", PrivateKey: &privateKey{Size: 8192}},
		"unknown key": {CommonName: "a", PrivateKey: &privateKey{Algorithm: "DSA"}},
	} {
		if _, err := issue(r, nil, now); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An authority that has ended issues nothing: it would be issued again and again.
func TestEndedAuthority(t *testing.T) {
	_, authority := mustIssue(t, request{CommonName: "authority", IsCA: true}, nil, now)
	_, err := issue(request{CommonName: "a"}, authority, now.Add(91*24*time.Hour))
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.UserMessage(err), "renew it") {
		t.Errorf("%v", err)
	}
}

// CX-26: a certificate is issued again when it has to be, and not before.
func TestDue(t *testing.T) {
	_, first := mustIssue(t, request{CommonName: "authority", IsCA: true}, nil, now)
	_, second := mustIssue(t, request{CommonName: "authority", IsCA: true}, nil, now)
	c := certificate(request{DNSNames: []string{"a"}, Duration: &metav1.Duration{Duration: 90 * time.Hour}})
	out, _ := mustIssue(t, c.Spec, first, now)
	other := certificate(request{DNSNames: []string{"b"}})
	long := certificate(request{DNSNames: []string{"a"}, Duration: &metav1.Duration{Duration: 365 * 24 * time.Hour}})
	cut, _ := mustIssue(t, long.Spec, first, now) // it ends with its authority, and so would the next one
	eager := certificate(request{DNSNames: []string{"a"}, Duration: &metav1.Duration{Duration: time.Hour}, RenewBefore: &metav1.Duration{Duration: time.Hour - time.Second}})
	young, _ := mustIssue(t, eager.Spec, first, now)
	cases := map[string]struct {
		c         certManagerCertificate
		secret    *corev1.Secret
		authority *tls.Certificate
		now       time.Time
		want      string
	}{
		"nothing there":         {c, nil, first, now, "the Secret does not exist"},
		"up to date":            {c, secretOf(c, out), first, now, ""},
		"before the last third": {c, secretOf(c, out), first, now.Add(59 * time.Hour), ""},
		"in the last third":     {c, secretOf(c, out), first, now.Add(61 * time.Hour), "the certificate is about to expire"},
		"clock set back":        {c, secretOf(c, out), first, now.Add(-time.Hour), "the certificate is not valid yet"},
		"with its authority":    {long, secretOf(long, cut), first, now.Add(89 * 24 * time.Hour), ""},
		"after its authority":   {long, secretOf(long, cut), first, now.Add(91 * 24 * time.Hour), "the certificate has expired"},
		"renewed at once":       {eager, secretOf(eager, young), first, now.Add(19 * time.Minute), ""},
		"renewed often":         {eager, secretOf(eager, young), first, now.Add(21 * time.Minute), "the certificate is about to expire"},
		"other names":           {other, secretOf(c, out), first, now, "the specification of the Certificate has changed"},
		"other authority":       {c, secretOf(c, out), second, now, "the CA was renewed"},
		"unreadable":            {c, &corev1.Secret{Data: map[string][]byte{"tls.crt": []byte("x")}}, first, now, "the Secret has no valid certificate with its private key"},
	}
	for name, tc := range cases {
		if got := issueReason(tc.c, tc.secret, tc.authority, tc.now); got != tc.want {
			t.Errorf("%s: %q, not %q", name, got, tc.want)
		}
	}
	if mayWriteSecret(&corev1.Secret{}, c) || !mayWriteSecret(secretOf(c, out), c) || !mayWriteSecret(nil, c) {
		t.Error("a Secret of someone else may be overwritten")
	}
}
