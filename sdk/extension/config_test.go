package extension_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
)

// serveCA is serve with a client that trusts the extension.
func serveCA(t *testing.T, x *extension.Extension, cfg extension.Config) (served, *http.Client) {
	t.Helper()
	cfg.CAFile = filepath.Join(t.TempDir(), "ca.crt")
	s := serve(t, x, cfg)
	pem, err := os.ReadFile(cfg.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	return s, dial(t, pem)
}

// RT-23: during the delay the extension is not ready, and answers calls; after it, it ends.
func TestShutdownDelay(t *testing.T) {
	asked, over := make(chan time.Duration, 1), make(chan time.Time)
	s, c := serveCA(t, newExtension(t, create(answerNothing)), extension.Config{ShutdownDelay: 5 * time.Second}.WithAfter(
		func(d time.Duration) <-chan time.Time {
			asked <- d
			return over
		}))
	if code, _, err := get(t, c, s.url+"/readyz"); code != http.StatusOK {
		t.Fatalf("%d %v", code, err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	if d := <-asked; d != 5*time.Second {
		t.Errorf("the delay is %s", d)
	}
	if code, body, err := get(t, c, s.url+"/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("readyz: %d %s %v", code, body, err)
	}
	if code, body, err := get(t, c, s.url+"/healthz"); code != http.StatusOK {
		t.Errorf("healthz: %d %s %v", code, body, err)
	}
	if code, body, err := discover(t, c, s.url); code != http.StatusOK {
		t.Errorf("a call during the delay: %d %s %v", code, body, err)
	}
	close(over)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, _, err := get(t, c, s.url+"/healthz"); err == nil {
		t.Error("it still listens")
	}
}

// RT-23: metrics have an address of their own, without TLS and certificates, with routes such as those of a profiler; the
// hooks' port has none then.
func TestMetricsAddress(t *testing.T) {
	address := make(chan net.Addr, 1)
	s, c := serveCA(t, newExtension(t, create(answerNothing)), extension.Config{
		MetricsAddress: "127.0.0.1:0", MetricsListening: func(a net.Addr) { address <- a },
		MetricsRoutes: map[string]http.Handler{"GET /debug/": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("debug")) })},
	})
	apart := "http://" + (<-address).String()
	for path, want := range map[string]string{"/metrics": "go_goroutines", "/debug/x": "debug"} {
		if code, body, err := get(t, c, apart+path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s %v", path, code, body, err)
		}
	}
	if code, _, err := get(t, c, s.url+"/metrics"); code != http.StatusNotFound {
		t.Errorf("metrics on the port of the hooks: %d %v", code, err)
	}
	if code, _, err := discover(t, c, apart); code != http.StatusNotFound && code != http.StatusMethodNotAllowed {
		t.Errorf("a hook on the port of the metrics: %d %v", code, err)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if _, _, err := get(t, c, apart+"/metrics"); err == nil {
		t.Error("the metrics are still served")
	}
}

// RT-23: routes and middleware are for the callers of hooks only; probes need neither.
func TestRoutesAndMiddleware(t *testing.T) {
	dir := t.TempDir()
	server, manager := made(t, "127.0.0.1"), made(t, "manager")
	write(t, dir, server)
	clients := filepath.Join(dir, "clients.crt")
	if err := os.WriteFile(clients, manager.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(manager.Certificate, manager.Key)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, newExtension(t, create(answerNothing)), extension.Config{
		CertDir: dir, ClientCAFile: clients,
		Routes: map[string]http.Handler{"GET /extra": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("extra")) })},
		Middleware: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Middleware", "yes")
				next.ServeHTTP(w, r)
			})
		},
	})
	known, unknown := dial(t, server.CA, pair), dial(t, server.CA)
	for path, want := range map[string]struct {
		known, unknown int
		middleware     string
	}{"/extra": {200, 403, "yes"}, "/readyz": {200, 200, ""}} {
		r, err := known.Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != want.known || r.Header.Get("Middleware") != want.middleware {
			t.Errorf("%s: %d %q", path, r.StatusCode, r.Header.Get("Middleware"))
		}
		if code, _, err := get(t, unknown, s.url+path); code != want.unknown {
			t.Errorf("%s without a certificate: %d %v", path, code, err)
		}
	}
	if code, _, err := discover(t, known, s.url); code != http.StatusOK {
		t.Errorf("a hook: %d %v", code, err)
	}
}

// RT-17, RT-23: options of TLS hold with and without certificates of clients: HTTP/2 can be turned off, versions be demanded.
func TestTLSOptions(t *testing.T) {
	dir := t.TempDir()
	server := made(t, "127.0.0.1")
	write(t, dir, server)
	options := []func(*tls.Config){
		func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} },
		func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 },
	}
	for name, tc := range map[string]struct {
		cfg   extension.Config
		proto int
	}{
		"default":            {extension.Config{CertDir: dir}, 2},
		"default, clients":   {extension.Config{CertDir: dir, ClientCAFile: filepath.Join(dir, "ca.crt")}, 2},
		"no HTTP/2":          {extension.Config{CertDir: dir, TLSOptions: options}, 1},
		"no HTTP/2, clients": {extension.Config{CertDir: dir, ClientCAFile: filepath.Join(dir, "ca.crt"), TLSOptions: options}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, newExtension(t), tc.cfg)
			c := dial(t, server.CA)
			c.Transport.(*http.Transport).ForceAttemptHTTP2 = true
			r, err := c.Get(s.url + "/healthz")
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Body.Close()
			if r.ProtoMajor != tc.proto {
				t.Errorf("it speaks %s", r.Proto)
			}
			old := dial(t, server.CA)
			old.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS12
			if _, _, err := get(t, old, s.url+"/healthz"); (err != nil) != (tc.proto == 1) {
				t.Errorf("TLS 1.2: %v", err)
			}
		})
	}
}

// RT-23: a library of traces gets the headers of a call.
func TestPropagate(t *testing.T) {
	type key struct{}
	got := make(chan any, 1)
	x := newExtension(t, create(func(ctx context.Context, _ *hooksv1.BeforeClusterCreateRequest, _ *hooksv1.BeforeClusterCreateResponse) {
		got <- ctx.Value(key{})
	}))
	s, c := serveCA(t, x, extension.Config{Propagate: func(ctx context.Context, h http.Header) context.Context {
		return context.WithValue(ctx, key{}, h.Get("b3"))
	}})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+group+"beforeclustercreate/before-create",
		strings.NewReader(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRequest"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("b3", "a-trace")
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if v := <-got; v != "a-trace" {
		t.Errorf("the handler has %v", v)
	}
}

// RT-23: a configuration that cannot be meant is refused before anything is listened at.
func TestServeRefusesConfigurations(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	nothing := map[string]http.Handler{"/healthz{": http.NotFoundHandler()}
	for name, tc := range map[string]struct {
		cfg  extension.Config
		want string
	}{
		"environment":      {extension.FromEnv(func(n string) string { return map[string]string{extension.EnvShutdownDelay: "5"}[n] }), `EXTENSION_SHUTDOWN_DELAY is "5"; want a duration such as 5s`},
		"negative":         {extension.Config{ShutdownDelay: -1}, "is negative"},
		"routes":           {extension.Config{MetricsRoutes: nothing}, "need a metrics address"},
		"pattern":          {extension.Config{Routes: nothing}, `the route "/healthz{" cannot be served`},
		"taken pattern":    {extension.Config{Routes: map[string]http.Handler{"/": http.NotFoundHandler()}}, `the route "/" cannot be served`},
		"metrics pattern":  {extension.Config{MetricsAddress: "127.0.0.1:0", MetricsRoutes: nothing}, `the route "/healthz{" cannot be served`},
		"metrics taken":    {extension.Config{MetricsAddress: listener.Addr().String()}, "listening at"},
		"hooks taken":      {extension.Config{MetricsAddress: "127.0.0.1:0", Address: listener.Addr().String()}, "listening at"},
		"no handler of it": {extension.Config{Routes: map[string]http.Handler{"/x": nil}}, `the route "/x" cannot be served`},
	} {
		t.Run(name, func(t *testing.T) {
			tc.cfg.Log = quiet()
			if tc.cfg.Address == "" {
				tc.cfg.Address = "127.0.0.1:0"
			}
			ctx, cancel := context.WithCancel(t.Context())
			tc.cfg.Listening = func(net.Addr) { cancel() }
			defer cancel()
			if err := newExtension(t).Serve(ctx, tc.cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q, got %v", tc.want, err)
			}
		})
	}
}
