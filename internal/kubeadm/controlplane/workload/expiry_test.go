package workload

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/workload/portforward"
)

// expiryPod serves one connection as an API server, and says to what it was connected.
type expiryPod struct {
	certificate *tls.Certificate // nil: it is silent
	refused     error
	to          portforward.Target
}

func (p *expiryPod) Forward(_ context.Context, _ client.ObjectKey, to portforward.Target) (net.Conn, error) {
	p.to = to
	if p.refused != nil {
		return nil, p.refused
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		defer func() { _ = l.Close() }()
		conn, err := l.Accept()
		if err != nil || p.certificate == nil {
			return
		}
		server := tls.Server(conn, &tls.Config{
			MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert, Certificates: []tls.Certificate{*p.certificate},
		})
		_ = server.Handshake()
		_ = server.Close()
	}()
	return net.Dial("tcp", l.Addr().String())
}

func issued(t *testing.T, by pki.Pair, lifetime time.Duration, at time.Time) *tls.Certificate {
	t.Helper()
	pair, err := by.Issue(pki.Leaf{User: "kube-apiserver", Names: []string{"kubernetes"}, Lifetime: lifetime}, at)
	if err != nil {
		t.Fatal(err)
	}
	out, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return &out
}

// itself is a server that presents the certificate of the CA, whose key is on each control plane node.
func itself(t *testing.T, authority pki.Pair) *tls.Certificate {
	t.Helper()
	out, err := tls.X509KeyPair(authority.CertPEM, authority.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return &out
}

func TestOf(t *testing.T) { // KC-24
	began := time.Now().Add(-48 * time.Hour).Truncate(time.Second)
	authority, err := pki.NewAuthority(pki.Authority{Name: "kubernetes"}, began)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := pki.NewAuthority(pki.Authority{Name: "kubernetes"}, began)
	if err != nil {
		t.Fatal(err)
	}
	valid, expired := issued(t, authority, 96*time.Hour, began), issued(t, authority, 24*time.Hour, began)
	for name, tc := range map[string]struct {
		pod    expiryPod
		server ExpiryServer
		want   time.Time // zero: a fault
		to     portforward.Target
	}{
		"valid":             {expiryPod{certificate: valid}, ExpiryServer{Node: "cp-1"}, valid.Leaf.NotAfter, portforward.Target{Namespace: "kube-system", Pod: "kube-apiserver-cp-1", Port: 6443}},
		"expired":           {expiryPod{certificate: expired}, ExpiryServer{Node: "cp-1", Port: 443}, expired.Leaf.NotAfter, portforward.Target{Namespace: "kube-system", Pod: "kube-apiserver-cp-1", Port: 443}},
		"the CA itself":     {expiryPod{certificate: itself(t, authority)}, ExpiryServer{Node: "cp-1"}, authority.Cert.NotAfter, portforward.Target{Namespace: "kube-system", Pod: "kube-apiserver-cp-1", Port: 6443}},
		"another authority": {expiryPod{certificate: issued(t, foreign, 96*time.Hour, began)}, ExpiryServer{Node: "cp-1"}, time.Time{}, portforward.Target{Namespace: "kube-system", Pod: "kube-apiserver-cp-1", Port: 6443}},
		"refused":           {expiryPod{refused: errors.New("nothing listens")}, ExpiryServer{Node: "cp-2"}, time.Time{}, portforward.Target{Namespace: "kube-system", Pod: "kube-apiserver-cp-2", Port: 6443}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.server.Cluster = client.ObjectKey{Namespace: "team", Name: "tower"}
			got, err := ExpiryReader{Forwarder: &tc.pod, Secrets: []client.Reader{secrets(authority.CertPEM)}}.Expiry(t.Context(), tc.server)
			if !got.Equal(tc.want) || (err == nil) == tc.want.IsZero() || tc.want.IsZero() && fault.KindOf(err) != fault.Unreachable {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
			if tc.pod.to != tc.to {
				t.Errorf("connected to %+v, want %+v", tc.pod.to, tc.to)
			}
		})
	}
}

// What does not respond is given up when the caller does, and without the authority nothing is asked.
func TestOfWhatDoesNotAnswer(t *testing.T) {
	began := time.Now()
	authority, err := pki.NewAuthority(pki.Authority{Name: "kubernetes"}, began)
	if err != nil {
		t.Fatal(err)
	}
	server := ExpiryServer{Cluster: client.ObjectKey{Namespace: "team", Name: "tower"}, Node: "cp-1"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (ExpiryReader{Forwarder: &expiryPod{}, Secrets: []client.Reader{secrets(authority.CertPEM)}}).Expiry(ctx, server); fault.KindOf(err) != fault.Unreachable {
		t.Errorf("got %v", err)
	}
	asked := &expiryPod{}
	_, err = ExpiryReader{Forwarder: asked, Secrets: []client.Reader{fake.NewClientBuilder().Build()}}.Expiry(t.Context(), server)
	if fault.KindOf(err) != fault.Unreachable || !strings.Contains(err.Error(), "Secret tower-ca has no certificate") || asked.to.Pod != "" {
		t.Errorf("got %v, asked %+v", err, asked.to)
	}
}

func secrets(ca []byte) client.Reader {
	return fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "tower-ca"}, Data: map[string][]byte{"tls.crt": ca},
	}).Build()
}
