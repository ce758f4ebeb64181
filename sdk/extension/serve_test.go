package extension_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/servingcert"
)

// served is an extension that listens.
type served struct {
	url  string
	stop func() error
}

func serve(t *testing.T, x *extension.Extension, cfg extension.Config) served {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	address, ended := make(chan net.Addr, 1), make(chan error, 1)
	cfg.Address, cfg.Log = "127.0.0.1:0", quiet()
	cfg.Listening = func(a net.Addr) { address <- a }
	go func() { ended <- x.Serve(ctx, cfg) }()
	t.Cleanup(cancel)
	select {
	case a := <-address:
		return served{"https://" + a.String(), func() error { cancel(); return <-ended }}
	case err := <-ended:
		t.Fatal(err)
		return served{}
	}
}

// dial makes a client that trusts the PEM and shows the certificate, on connections of its own.
func dial(t *testing.T, ca []byte, own ...tls.Certificate) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		t.Fatalf("no certificate: %s", ca)
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: own}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func get(t *testing.T, c *http.Client, url string) (int, string, error) {
	t.Helper()
	r, err := c.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	return r.StatusCode, string(body), err
}

func discover(t *testing.T, c *http.Client, url string) (int, string, error) {
	t.Helper()
	r, err := c.Post(url+group+"discovery", "application/json",
		strings.NewReader(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"DiscoveryRequest"}`))
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	return r.StatusCode, string(body), err
}

// RT-23: without files the extension makes a certificate, and says by which authority.
func TestServeWithoutACertificate(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.crt")
	s := serve(t, newExtension(t, create(answerNothing)), extension.Config{CAFile: ca})
	pem, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, pem)
	if code, body, err := discover(t, c, s.url); code != http.StatusOK || !strings.Contains(body, "before-create") {
		t.Errorf("discovery: %d %s %v", code, body, err)
	}
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ok", "/metrics": "runtime_extension_calls_total"} {
		if code, body, err := get(t, c, s.url+path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s %v", path, code, body, err)
		}
	}
	old := dial(t, pem)
	old.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS11
	if _, _, err := get(t, old, s.url+"/healthz"); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, dir string, made servingcert.Certificate) {
	t.Helper()
	for name, data := range map[string][]byte{"tls.key": made.Key, "tls.crt": made.Certificate, "ca.crt": made.CA} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func made(t *testing.T, hosts ...string) servingcert.Certificate {
	t.Helper()
	m, err := servingcert.New(hosts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// RT-23: certificates that were replaced are used without a restart; a broken one leaves the last in use.
func TestServeReloads(t *testing.T) {
	dir := t.TempDir()
	first, second := made(t, "127.0.0.1"), made(t, "127.0.0.1")
	write(t, dir, first)
	s := serve(t, newExtension(t), extension.Config{CertDir: dir})
	works := func(m servingcert.Certificate) bool {
		_, _, err := get(t, dial(t, m.CA), s.url+"/healthz")
		return err == nil
	}
	if !works(first) || works(second) {
		t.Fatal("the certificate in the folder is not the one that is served")
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !works(first) {
		t.Fatal("a broken certificate took the place of a good one")
	}
	write(t, dir, second)
	for deadline := time.Now().Add(30 * time.Second); !works(second); {
		if time.Now().After(deadline) {
			t.Fatal("the new certificate is not served")
		}
	}
	if works(first) {
		t.Error("the old certificate is still served")
	}
}

// RT-17, RT-23: with a client CA, hooks and metrics are for callers with a certificate of that CA and name; probes are
// for everybody.
func TestServeClients(t *testing.T) {
	dir := t.TempDir()
	server, manager, stranger := made(t, "127.0.0.1"), made(t, "manager"), made(t, "manager")
	write(t, dir, server)
	clients := filepath.Join(dir, "clients.crt")
	if err := os.WriteFile(clients, manager.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	pair := func(m servingcert.Certificate) tls.Certificate {
		p, err := tls.X509KeyPair(m.Certificate, m.Key)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, tc := range map[string]struct {
		reason, client string
		certificates   []tls.Certificate
		code           int
	}{
		"right":    {"CA and name fit", "manager", []tls.Certificate{pair(manager)}, 200},
		"any name": {"no name is asked for", "", []tls.Certificate{pair(manager)}, 200},
		"name":     {"another name is asked for", "somebody", []tls.Certificate{pair(manager)}, 403},
		"none":     {"there is no certificate", "manager", nil, 403},
		"stranger": {"the certificate is from another CA", "manager", []tls.Certificate{pair(stranger)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, newExtension(t), extension.Config{CertDir: dir, ClientCAFile: clients, ClientName: tc.client})
			if code, body, _ := discover(t, dial(t, server.CA, tc.certificates...), s.url); code != tc.code {
				t.Errorf("%s: got %d %s, want %d", tc.reason, code, body, tc.code)
			}
			if code, _, err := get(t, dial(t, server.CA), s.url+"/readyz"); code != http.StatusOK {
				t.Errorf("the probe gets %d %v", code, err)
			}
			if code, _, _ := get(t, dial(t, server.CA), s.url+"/metrics"); code != http.StatusForbidden {
				t.Errorf("metrics without a certificate: %d", code)
			}
		})
	}
}

// RT-23: calls that have begun when the program is told to stop are answered.
func TestServeStops(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.crt")
	began, end := make(chan struct{}), make(chan struct{})
	s := serve(t, newExtension(t, create(func(context.Context, *hooksv1.BeforeClusterCreateRequest, *hooksv1.BeforeClusterCreateResponse) {
		close(began)
		<-end
	})), extension.Config{CAFile: ca})
	pem, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, pem)
	answer := make(chan error, 1)
	go func() {
		r, err := c.Post(s.url+group+"beforeclustercreate/before-create", "application/json",
			strings.NewReader(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRequest"}`))
		if err == nil {
			err = r.Body.Close()
		}
		answer <- err
	}()
	<-began
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	for deadline := time.Now().Add(30 * time.Second); ; {
		if _, _, err := get(t, c, s.url+"/healthz"); err != nil {
			break // new connections are refused
		}
		if time.Now().After(deadline) {
			t.Fatal("the extension still takes connections")
		}
	}
	close(end)
	if err := <-answer; err != nil {
		t.Errorf("the call that had begun: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// RT-23: what cannot be served with is said at the start.
func TestServeRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, made(t))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for name, tc := range map[string]struct {
		cfg  extension.Config
		want string
	}{
		"no file":     {extension.Config{CertFile: dir + "/none", KeyFile: dir + "/none"}, "reading the certificate"},
		"half a pair": {extension.Config{CertFile: dir + "/tls.crt"}, "name both files or neither"},
		"name alone":  {extension.Config{ClientName: "x"}, "name both or neither"},
		"no CA":       {extension.Config{ClientCAFile: dir + "/tls.key"}, "has no certificate"},
		"taken":       {extension.Config{Address: listener.Addr().String()}, "listening at"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.cfg.Log = quiet()
			if err := newExtension(t).Serve(t.Context(), tc.cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q, got %v", tc.want, err)
			}
		})
	}
}

// RT-23: the port is 9443 unless the environment says otherwise.
func TestFromEnv(t *testing.T) {
	if extension.DefaultAddress != ":9443" {
		t.Error("the port of the Runtime SDK is 9443")
	}
	env := map[string]string{"EXTENSION_ADDRESS": "127.0.0.1:1", "EXTENSION_CERT_FILE": "c", "EXTENSION_KEY_FILE": "k", "EXTENSION_CERT_DIR": "d",
		"EXTENSION_METRICS_ADDRESS": ":8080", "EXTENSION_SHUTDOWN_DELAY": "5s"}
	got := extension.FromEnv(func(name string) string { return env[name] })
	if got.Address != "127.0.0.1:1" || got.CertFile != "c" || got.KeyFile != "k" || got.CertDir != "d" || got.ClientCAFile != "" ||
		got.MetricsAddress != ":8080" || got.ShutdownDelay != 5*time.Second {
		t.Errorf("got %+v", got)
	}
}
