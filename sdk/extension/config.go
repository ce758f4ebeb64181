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
	"time"
)

// Defaults of [Config].
const (
	DefaultAddress         = ":9443"
	DefaultReadTimeout     = MaxTimeout // no caller waits for longer
	DefaultShutdownTimeout = 30 * time.Second
)

// Variables that [FromEnv] reads. `slipway extension run` sets the first three.
const (
	EnvAddress        = "EXTENSION_ADDRESS"
	EnvCertFile       = "EXTENSION_CERT_FILE"
	EnvKeyFile        = "EXTENSION_KEY_FILE"
	EnvCertDir        = "EXTENSION_CERT_DIR"
	EnvCAFile         = "EXTENSION_CA_FILE"
	EnvClientCA       = "EXTENSION_CLIENT_CA_FILE"
	EnvClient         = "EXTENSION_CLIENT_NAME"
	EnvMetricsAddress = "EXTENSION_METRICS_ADDRESS"
	EnvShutdownDelay  = "EXTENSION_SHUTDOWN_DELAY"
	EnvQuiet          = "EXTENSION_QUIET"
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
	// TLSOptions change the configuration of TLS after this package has filled it in, in their order: cipher suites,
	// curves, a GetCertificate of one's own. A NextProtos without "h2" turns HTTP/2 off.
	TLSOptions []func(*tls.Config)
	// MetricsAddress, host:port, where set, is where /metrics is served, over HTTP and for everybody who reaches it;
	// the port of the hooks has no /metrics then. Empty: /metrics is served beside the hooks, to their callers.
	MetricsAddress string
	// Routes are served beside the hooks, to their callers: patterns of [http.ServeMux] with their handlers.
	Routes map[string]http.Handler
	// MetricsRoutes are served at MetricsAddress, for instance those of net/http/pprof.
	MetricsRoutes map[string]http.Handler
	// Middleware, where set, is put around the hooks and Routes; callers without the wanted certificate do not reach it.
	Middleware func(http.Handler) http.Handler
	// Propagate, where set, puts what the headers of a call say into the context of its handler, for a library of
	// traces. With OpenTelemetry:
	//
	//	func(ctx context.Context, h http.Header) context.Context {
	//		return otel.GetTextMapPropagator().Extract(ctx, propagation.HeaderCarrier(h))
	//	}
	Propagate func(ctx context.Context, header http.Header) context.Context
	// ReadTimeout is how long a request may take to arrive, headers and body, before its handler is called; zero:
	// [DefaultReadTimeout].
	ReadTimeout time.Duration
	// ShutdownDelay is how long calls are still taken after the context has ended, while /readyz answers 503 already:
	// the time until a Service has taken the Pod out of its endpoints, 5 s is plenty. Zero: none.
	ShutdownDelay time.Duration
	// ShutdownTimeout is how long calls get to end after that; zero: [DefaultShutdownTimeout].
	ShutdownTimeout time.Duration
	// Log receives a line for every call; nil: slog's default.
	Log *slog.Logger
	// Quiet logs calls that were answered at debug: the program that made them shows them, as "slipway extension run" does.
	Quiet bool
	// Listening and MetricsListening, where set, are called with the address once it is listened at.
	Listening, MetricsListening func(net.Addr)

	problem error                                // what is wrong with the environment
	after   func(time.Duration) <-chan time.Time // nil: the clock
}

// FromEnv is the configuration in the environment, see the constants that begin with Env. What is not set has its default.
// A value that cannot be used is the error of [Extension.Serve].
func FromEnv(getenv func(string) string) Config {
	c := Config{
		Address: getenv(EnvAddress), CertFile: getenv(EnvCertFile), KeyFile: getenv(EnvKeyFile), CertDir: getenv(EnvCertDir),
		CAFile: getenv(EnvCAFile), ClientCAFile: getenv(EnvClientCA), ClientName: getenv(EnvClient),
		MetricsAddress: getenv(EnvMetricsAddress), Quiet: getenv(EnvQuiet) == "true",
	}
	if text := getenv(EnvShutdownDelay); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			c.problem = fmt.Errorf("the environment variable %s is %q; want a duration such as 5s", EnvShutdownDelay, text)
		}
		c.ShutdownDelay = d
	}
	return c
}

// check says what is wrong with a configuration before anything is opened.
func (c Config) check() error {
	switch {
	case c.problem != nil:
		return c.problem
	case c.ShutdownDelay < 0:
		return errors.New("the shutdown delay is negative")
	case len(c.MetricsRoutes) > 0 && c.MetricsAddress == "":
		return errors.New("routes at the metrics address need a metrics address")
	}
	return nil
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
	if c.after == nil {
		c.after = time.After
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
