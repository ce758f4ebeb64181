package extension

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Defaults of [Config].
const (
	DefaultAddress         = ":9443"
	DefaultReadTimeout     = MaxTimeout // no caller waits for longer
	DefaultShutdownTimeout = 30 * time.Second
)

// Variables that [FromEnv] reads. `slipway extension run` sets the first three.
const (
	EnvAddress  = "EXTENSION_ADDRESS"
	EnvCertFile = "EXTENSION_CERT_FILE"
	EnvKeyFile  = "EXTENSION_KEY_FILE"
	EnvCAFile   = "EXTENSION_CA_FILE"
	EnvClientCA = "EXTENSION_CLIENT_CA_FILE"
	EnvClient   = "EXTENSION_CLIENT_NAME"
)

// Config says how to serve. The zero value serves at [DefaultAddress] with a certificate made on the spot.
type Config struct {
	// Address to listen at, host:port; empty: [DefaultAddress].
	Address string
	// CertDir is put before CertFile and KeyFile where these are relative.
	CertDir string
	// CertFile and KeyFile are PEM, read again when they change; with CertDir their defaults are tls.crt and tls.key.
	// Without any of the three the extension makes a certificate of its own, for Hosts.
	CertFile, KeyFile string
	// Hosts that a certificate made on the spot is for: names and addresses. Default: localhost, 127.0.0.1, ::1 and
	// the name of the machine.
	Hosts []string
	// CAFile, where set, receives the PEM of the authority of a certificate made on the spot: the caBundle of the
	// ExtensionConfig.
	CAFile string
	// ClientCAFile, where set, is a PEM bundle, read again when it changes: only callers with a certificate from it
	// may call hooks. /healthz and /readyz stay open.
	ClientCAFile string
	// ClientName is the common name or DNS name that such a certificate must have; empty: any.
	ClientName string
	// ReadTimeout is how long a request may take to arrive, headers and body, before its handler is called; zero:
	// [DefaultReadTimeout].
	ReadTimeout time.Duration
	// ShutdownTimeout is how long calls get to end; zero: [DefaultShutdownTimeout].
	ShutdownTimeout time.Duration
	// Log receives a line for every call; nil: slog's default.
	Log *slog.Logger
	// Listening, where set, is called with the address once it is listened at.
	Listening func(net.Addr)
}

// FromEnv is the configuration in the environment: EXTENSION_ADDRESS, EXTENSION_CERT_FILE, EXTENSION_KEY_FILE,
// EXTENSION_CA_FILE, EXTENSION_CLIENT_CA_FILE and EXTENSION_CLIENT_NAME. What is not set has its default.
func FromEnv(getenv func(string) string) Config {
	return Config{
		Address: getenv(EnvAddress), CertFile: getenv(EnvCertFile), KeyFile: getenv(EnvKeyFile), CAFile: getenv(EnvCAFile),
		ClientCAFile: getenv(EnvClientCA), ClientName: getenv(EnvClient),
	}
}

func (c Config) withDefaults() Config {
	if c.Address == "" {
		c.Address = DefaultAddress
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = DefaultReadTimeout
	}
	if c.ShutdownTimeout == 0 {
		c.ShutdownTimeout = DefaultShutdownTimeout
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.CertDir != "" {
		c.CertFile, c.KeyFile = within(c.CertDir, c.CertFile, "tls.crt"), within(c.CertDir, c.KeyFile, "tls.key")
	}
	return c
}

func within(dir, file, otherwise string) string {
	if file == "" {
		file = otherwise
	}
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// Serve listens and answers until ctx ends; then calls that are being answered get [Config.ShutdownTimeout] to end.
// Beside the hooks it serves /healthz, /readyz (not ready once ctx has ended) and /metrics. It returns nil after ctx
// ended, and an error when the address or the certificates cannot be used.
func (x *Extension) Serve(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	secured, err := newSecurity(cfg)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Address)
	if err != nil {
		return fmt.Errorf("listening at %s: %w", cfg.Address, err)
	}
	var stopping atomic.Bool
	server := &http.Server{
		Handler: secured.only(x.endpoints(cfg.Log, &stopping)), TLSConfig: secured.tls(),
		ReadTimeout: cfg.ReadTimeout, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	cfg.Log.Info("serving", "address", listener.Addr().String(), "handlers", len(x.order))
	if cfg.Listening != nil {
		cfg.Listening(listener.Addr())
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serving at %s: %w", cfg.Address, err)
	case <-ctx.Done():
	}
	stopping.Store(true)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.ShutdownTimeout)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		return errors.Join(fmt.Errorf("calls did not end within %s: %w", cfg.ShutdownTimeout, err), server.Close())
	}
	return nil
}

func (x *Extension) endpoints(log *slog.Logger, stopping *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", x.Handler(log))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if stopping.Load() {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(x.registry, promhttp.HandlerOpts{}))
	return mux
}

// only lets callers with the wanted certificate through, and everybody to the health endpoints.
func (s *security) only(next http.Handler) http.Handler {
	if s.clients == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
		if err := s.checkClient(r.TLS); err != nil && !open {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// tls is the configuration of the server: TLS 1.2 or later.
func (s *security) tls() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate}
	if s.clients == nil {
		return c
	}
	c.ClientAuth = tls.VerifyClientCertIfGiven
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := s.clients.get()
		if err != nil {
			return nil, err
		}
		own := c.Clone()
		own.GetConfigForClient, own.ClientCAs = nil, pool
		own.NextProtos = []string{"h2", "http/1.1"}
		return own, nil
	}
	return c
}
