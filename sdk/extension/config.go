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
	DefaultReadTimeout     = MaxTimeout // no caller waits longer
	DefaultShutdownTimeout = 30 * time.Second
)

// Environment variables of [FromEnv]. `slipway extension run` sets the first three.
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

// Config configures the server. The zero value serves at [DefaultAddress] with a generated certificate.
type Config struct {
	// Address is the listen address, host:port; default [DefaultAddress].
	Address string
	// CertDir is the directory for relative paths in CertFile and KeyFile.
	CertDir string
	// CertFile and KeyFile are PEM files, which are reloaded when they change. With CertDir they default to tls.crt and
	// tls.key. If none of the three is set, a certificate for Hosts is generated.
	CertFile, KeyFile string
	// Hosts are the host names and addresses in a generated certificate. Default: localhost, 127.0.0.1, ::1 and the
	// name of the machine.
	Hosts []string
	// CAFile, if set, is the file to which the PEM-encoded CA of a generated certificate is written, for the caBundle
	// of the ExtensionConfig.
	CAFile string
	// ClientCAFile, if set, is a PEM bundle, which is reloaded when it changes. Callers of hooks then need a client
	// certificate signed by one of its CAs. /healthz and /readyz remain accessible without one.
	ClientCAFile string
	// ClientName is the required common name or DNS name of client certificates; empty for any.
	ClientName string
	// TLSOptions modify the TLS configuration of this package in order, for example the cipher suites, curves, or
	// GetCertificate. NextProtos without "h2" disables HTTP/2.
	TLSOptions []func(*tls.Config)
	// MetricsAddress, host:port, if set, is a separate listen address for /metrics over HTTP, without access control;
	// the port of the hooks then does not serve /metrics. If empty, /metrics is served on the port of the hooks, with
	// the same access control.
	MetricsAddress string
	// Routes are additional handlers on the port of the hooks, with the same access control, by patterns of
	// [http.ServeMux].
	Routes map[string]http.Handler
	// MetricsRoutes are additional handlers at MetricsAddress, for example from net/http/pprof.
	MetricsRoutes map[string]http.Handler
	// Middleware, if set, wraps the hooks and Routes. It is called after client certificates have been checked.
	Middleware func(http.Handler) http.Handler
	// Propagate, if set, adds information from the headers of a call to the context of its handler, for tracing
	// libraries. With OpenTelemetry:
	//
	//	func(ctx context.Context, h http.Header) context.Context {
	//		return otel.GetTextMapPropagator().Extract(ctx, propagation.HeaderCarrier(h))
	//	}
	Propagate func(ctx context.Context, header http.Header) context.Context
	// ReadTimeout is the timeout for reading a request with its headers and body; zero means [DefaultReadTimeout].
	ReadTimeout time.Duration
	// ShutdownDelay is how long calls are still accepted after the context has ended, while /readyz already returns
	// 503, so that the Service can remove the Pod from its endpoints; 5 s is sufficient. Zero for no delay.
	ShutdownDelay time.Duration
	// ShutdownTimeout is the subsequent timeout for calls in progress; zero means [DefaultShutdownTimeout].
	ShutdownTimeout time.Duration
	// Log receives a line for every call; nil means slog's default.
	Log *slog.Logger
	// Quiet logs successful calls at debug level, because the calling program displays them, as "slipway extension run"
	// does.
	Quiet bool
	// Listening and MetricsListening, if set, are called with the listen address.
	Listening, MetricsListening func(net.Addr)

	problem error                                // error in the environment
	after   func(time.Duration) <-chan time.Time // nil means time.After
}

// FromEnv returns the configuration from environment variables; see the constants with the prefix Env. Unset variables
// have their defaults. An invalid value is returned as an error by [Extension.Serve].
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

// check validates the configuration.
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
