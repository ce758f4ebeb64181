package credentials

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// requestOf is a request for a user and groups, for the signer of Cluster ns/c.
func requestOf(t *testing.T, change func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	content := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "anna", Organization: []string{"team-a"}}}
	r := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "1-2", Annotations: map[string]string{RoleAnnotation: "view"}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: SignerOf(client.ObjectKey{Namespace: "ns", Name: "c"}), Username: "anna",
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
	if change != nil {
		change(content, r)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, content, key)
	if err != nil {
		t.Fatal(err)
	}
	if r.Spec.Request == nil {
		r.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	}
	return r
}

func newAuthority(t *testing.T, from time.Time) *corev1.Secret {
	t.Helper()
	ca, err := pki.NewAuthority(pki.Authority{Name: "kubernetes"}, from)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "c-ca"}, Data: map[string][]byte{corev1.TLSCertKey: ca.CertPEM, corev1.TLSPrivateKeyKey: ca.KeyPEM}}
}

func TestDecide(t *testing.T) { // CX-08
	seconds := func(n int32) func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequest) {
		return func(_ *x509.CertificateRequest, r *certificatesv1.CertificateSigningRequest) {
			r.Spec.ExpirationSeconds = &n
		}
	}
	named := func(user string, groups ...string) func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequest) {
		return func(c *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
			c.Subject = pkix.Name{CommonName: user, Organization: groups}
		}
	}
	condition := func(of certificatesv1.RequestConditionType) []certificatesv1.CertificateSigningRequestCondition {
		return []certificatesv1.CertificateSigningRequestCondition{{Type: of, Status: corev1.ConditionTrue}}
	}
	approved := func(s *snapshot) {
		s.Request.Status.Conditions = condition(certificatesv1.CertificateApproved)
	}
	for name, tc := range map[string]struct {
		reason  string
		request func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequest)
		change  func(*snapshot)
		want    string // what is done, and a part of the message
	}{
		"a new request": {"the rules hold and the creator has the verb", nil, nil, `approve ConnectAllowed user "anna" may connect to Cluster ns/c`},
		"system group": {"members of system:masters are bound by no rule", named("anna", "team-a", "system:masters"), nil,
			`deny RequestInvalid group "system:masters" is reserved`},
		"group of kubeadm": {"kubeadm binds this one to cluster-admin", named("anna", "kubeadm:cluster-admins"), nil,
			`deny RequestInvalid group "kubeadm:cluster-admins" is reserved`},
		"group of another certificate": {"its rights are not to be had a second time", named("anna", GroupPrefix+"5"), nil, `deny RequestInvalid group "slipway:personal:5" is reserved`},
		"system user":                  {"a component", named("system:kube-scheduler"), nil, `deny RequestInvalid user "system:kube-scheduler" is reserved`},
		"no user":                      {"", named(""), nil, `deny RequestInvalid "" cannot be the name of a user`},
		"a long user":                  {"", named(strings.Repeat("x", 65)), nil, "deny RequestInvalid"},
		"many groups":                  {"", named("anna", strings.Split(strings.Repeat("g,", 40), ",")[:40]...), nil, "deny RequestInvalid it has 40 groups, and may have 32"},
		"names of a server": {"a client needs none", func(c *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
			c.DNSNames = []string{"kubernetes.default"}
		}, nil, "deny RequestInvalid the certificate is one of a client"},
		"URIs": {"", func(c *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
			c.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}}
		}, nil, "deny RequestInvalid the certificate is one of a client"},
		"usage of a server": {"", func(_ *x509.CertificateRequest, r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
		}, nil, `deny RequestInvalid spec.usages has "server auth"`},
		"usage of none": {"", func(_ *x509.CertificateRequest, r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature}
		}, nil, `deny RequestInvalid spec.usages lacks "client auth"`},
		"not PEM": {"", func(_ *x509.CertificateRequest, r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Request = []byte("x")
		}, nil, "deny RequestInvalid spec.request is not one"},
		"no right":       {"the verb is missing", nil, func(s *snapshot) { s.Allowed = false }, `deny ConnectForbidden user "anna" may not connect to Cluster ns/c`},
		"no right, none": {"whether the Cluster exists is not disclosed", nil, func(s *snapshot) { s.Allowed, s.Cluster = false, nil }, "deny ConnectForbidden"},
		"no Cluster":     {"", nil, func(s *snapshot) { s.Cluster = nil }, "deny ClusterNotFound Cluster ns/c does not exist"},
		"denied":         {"decided", nil, func(s *snapshot) { s.Request.Status.Conditions = condition(certificatesv1.CertificateDenied) }, "nothing"},
		"failed": {"decided", nil, func(s *snapshot) {
			s.Request.Status.Conditions = append(condition(certificatesv1.CertificateApproved), condition(certificatesv1.CertificateFailed)...)
		}, "nothing"},
		"issued":   {"decided", nil, func(s *snapshot) { approved(s); s.Request.Status.Certificate = []byte("x") }, "nothing"},
		"approved": {"the group of the certificate comes with the role", nil, approved, "issue anna [slipway:personal:1-2 team-a] view for 8h0m0s"},
		"no role": {"the workload cluster gives the groups their rights", func(_ *x509.CertificateRequest, r *certificatesv1.CertificateSigningRequest) {
			r.Annotations = nil
		}, approved, "issue anna [team-a]  for 8h0m0s"},
		"ten minutes": {"", seconds(600), approved, "for 10m0s"},
		"a year":      {"a week at most", seconds(365 * 24 * 3600), approved, "for 168h0m0s"},
		"approved by another, against a rule": {"the rules bind others who approve", named("anna", "system:masters"), approved,
			`fail RequestInvalid group "system:masters" is reserved`},
		"no control plane yet": {"", nil, func(s *snapshot) { approved(s); s.Kubeconfig, s.Authority = secrets.Kubeconfig{}, nil }, "wait Waiting for the control plane of Cluster c to be initialized"},
		"authority without key": {"a user has it elsewhere", nil, func(s *snapshot) { approved(s); delete(s.Authority.Data, corev1.TLSPrivateKeyKey) },
			"fail AuthorityUnavailable Secret c-ca has no key that can sign"},
		"expired authority": {"", nil, func(s *snapshot) { approved(s); s.Authority = newAuthority(t, now.Add(-11*365*24*time.Hour)) },
			"fail AuthorityUnavailable the certificate of Secret c-ca is not valid any more"},
		"deleting": {"", nil, func(s *snapshot) { approved(s); s.Cluster.DeletionTimestamp = &metav1.Time{Time: now} }, "fail ClusterNotFound Cluster c is being deleted"},
		"deleted":  {"", nil, func(s *snapshot) { approved(s); s.Cluster = nil }, "fail ClusterNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot{
				Now: now, Request: requestOf(t, tc.request), Allowed: true, Cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}},
				Authority: newAuthority(t, now), Kubeconfig: secrets.Kubeconfig{Readable: true, Server: "https://127.0.0.1:1"},
			}
			if tc.change != nil {
				tc.change(&s)
			}
			if got := sentence(decide(s)); !strings.Contains(got, tc.want) || strings.HasPrefix(got, "nothing") != (tc.want == "nothing") {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func sentence(v decision) string {
	switch {
	case v.Deny != nil:
		return "deny " + v.Deny.Reason + " " + v.Deny.Message
	case v.Approve != nil:
		return "approve " + v.Approve.Reason + " " + v.Approve.Message
	case v.Fail != nil:
		return "fail " + v.Fail.Reason + " " + v.Fail.Message
	case v.Issue != nil:
		l := v.Issue.Leaf
		return "issue " + l.User + " [" + strings.Join(l.Groups, " ") + "] " + v.Issue.Role + " for " + l.Lifetime.String()
	case v.Wait != "":
		return "wait " + v.Wait
	}
	return "nothing"
}

// TestClusterOf: a name of a Cluster may have dots, a namespace has none.
func TestClusterOf(t *testing.T) {
	for signer, want := range map[string]string{
		"clusters.slipway.dev/ns.c": "ns/c", "clusters.slipway.dev/ns.c.d": "ns/c.d", "clusters.slipway.dev/ns": "", "clusters.slipway.dev/.c": "",
		"clusters.slipway.dev/ns.": "", "kubernetes.io/kube-apiserver-client": "", "example.clusters.slipway.dev/ns.c": "",
	} {
		key, ours := clusterOf(signer)
		if got := key.Namespace + "/" + key.Name; ours != (want != "") || ours && got != want {
			t.Errorf("%s: %s, %v", signer, got, ours)
		}
	}
}

// TestIssued: the certificate is what was decided, and is valid for the key of the request.
func TestIssued(t *testing.T) {
	ca, err := pki.NewAuthority(pki.Authority{Name: "kubernetes"}, now)
	if err != nil {
		t.Fatal(err)
	}
	w, broken := read(requestOf(t, nil))
	if broken != "" {
		t.Fatal(broken)
	}
	cert, _, err := ca.IssueFor(w.public, pki.Leaf{User: w.user, Groups: w.groups, Client: true, Lifetime: w.valid}, now)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil || cert.Subject.CommonName != "anna" || !slices.Equal(cert.Subject.Organization, []string{"team-a"}) || cert.IsCA || cert.NotAfter != now.Add(defaultValidity) {
		t.Errorf("%v: %v until %s", err, cert.Subject, cert.NotAfter)
	}
}

// FuzzRead: a tenant writes every byte of a request.
func FuzzRead(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"), "view", "anna")
	f.Fuzz(func(t *testing.T, content []byte, role, usage string) {
		r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{RoleAnnotation: role}}}
		r.Spec.Request, r.Spec.Usages = content, []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.KeyUsage(usage)}
		w, broken := read(r)
		if broken == "" && (w.user == "" || strings.HasPrefix(w.user, "system:") || w.public == nil || w.valid > MaxValidity) {
			t.Errorf("accepted: %+v", w)
		}
	})
}
