package repository_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
)

// internet is every host that a test may reach: one server on loopback with a certificate for all their names. Whatever has
// no handler does not exist, and nothing leaves this machine.
type internet struct {
	mu        sync.Mutex
	handlers  map[string]http.HandlerFunc
	requests  []string
	variables map[string]string
	pauses    []time.Duration
	transport http.RoundTripper
}

func newInternet(t *testing.T) *internet {
	t.Helper()
	n := &internet{handlers: map[string]http.HandlerFunc{}, variables: map[string]string{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(n.serve))
	server.Config.ErrorLog = log.New(&bytes.Buffer{}, "", 0)
	certificate := selfSigned(t)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	plain := httptest.NewServer(http.HandlerFunc(n.serve))
	roots := x509.NewCertPool()
	roots.AddCert(certificate.Leaf)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			to := server.Listener.Addr().String()
			if strings.HasSuffix(address, ":80") {
				to = plain.Listener.Addr().String()
			}
			return (&net.Dialer{}).DialContext(ctx, network, to)
		},
	}
	n.transport = transport
	t.Cleanup(func() { transport.CloseIdleConnections(); server.Close(); plain.Close() })
	return n
}

func hosts() []string {
	return []string{"github.com", "api.github.com", "assets.example", "proxy.golang.org", "first.example", "gitlab.example", "web.example", "registry.example", "elsewhere.example"}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: hosts(), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (n *internet) serve(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	scheme := map[bool]string{true: "https", false: "http"}[r.TLS != nil]
	line := scheme + "://" + r.Host + r.URL.Path
	n.requests = append(n.requests, line+map[bool]string{true: " with " + r.Header.Get("Authorization"), false: ""}[r.Header.Get("Authorization") != ""])
	handler := n.handlers[r.Host+r.URL.Path]
	if handler == nil {
		handler = n.handlers[r.Host]
	}
	n.mu.Unlock()
	if handler == nil {
		http.NotFound(w, r)
		return
	}
	handler(w, r)
}

// handle answers at HOST or HOST/PATH.
func (n *internet) handle(at string, h http.HandlerFunc) { n.handlers[at] = h }

func (n *internet) file(at, content string) {
	n.handle(at, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, content) })
}

func (n *internet) answer(at string, code int, header ...string) {
	n.handle(at, func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	})
}

func (n *internet) seen() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.requests, "\n")
}

func (n *internet) options() repository.Options {
	return repository.Options{
		Variable:  func(name string) (string, bool) { v, ok := n.variables[name]; return v, ok },
		Transport: n.transport,
		Pause: func(ctx context.Context, d time.Duration) error {
			n.pauses = append(n.pauses, d)
			return ctx.Err()
		},
	}
}

func (n *internet) open(t *testing.T, url string) *repository.Source {
	t.Helper()
	s, err := repository.Open(provider.Provider{Name: "acme", Type: provider.Infrastructure, URL: url}, n.options())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func metadata(series ...string) string {
	out := "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n"
	for _, s := range series {
		var major, minor int
		var contract string
		if _, err := fmt.Sscanf(s, "%d.%d %s", &major, &minor, &contract); err != nil {
			panic(err)
		}
		out += fmt.Sprintf("- {major: %d, minor: %d, contract: %s}\n", major, minor, contract)
	}
	return out
}

// wantFault checks kind and text of an error, and that no secret is in it.
func wantFault(t *testing.T, err error, kind fault.Kind, texts ...string) {
	t.Helper()
	if err == nil || fault.As(err) == nil || fault.KindOf(err) != kind {
		t.Fatalf("%v (%v), want a fault of kind %v", err, fault.KindOf(err), kind)
	}
	for _, text := range texts {
		if !strings.Contains(fault.UserMessage(err), text) {
			t.Errorf("%q does not say %q", fault.UserMessage(err), text)
		}
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a secret is in %q", err)
	}
}
