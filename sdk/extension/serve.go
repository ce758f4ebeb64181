package extension

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// Serve serves until ctx ends. Then /readyz reports it, calls are accepted for another [Config.ShutdownDelay], and
// calls in progress have [Config.ShutdownTimeout] to complete. In addition to the hooks it serves /healthz, /readyz,
// /metrics and [Config.Routes]. It returns nil after ctx has ended, and an error if addresses or certificates cannot be
// used.
func (x *Extension) Serve(ctx context.Context, cfg Config) error {
	if err := cfg.check(); err != nil {
		return err
	}
	cfg = cfg.withDefaults()
	s, err := x.open(ctx, cfg)
	if err != nil {
		return err
	}
	cfg.Log.Info("serving", "address", s.hooks.Addr().String(), "handlers", len(x.order))
	tellAddress(cfg.Listening, s.hooks)
	tellAddress(cfg.MetricsListening, s.metrics)
	select {
	case err := <-s.ended:
		return errors.Join(err, s.close())
	case <-ctx.Done():
	}
	s.stopping.Store(true)
	if cfg.ShutdownDelay > 0 {
		cfg.Log.Info("stopping: not ready any more", "delay", cfg.ShutdownDelay.String())
		select {
		case err := <-s.ended:
			return errors.Join(err, s.close())
		case <-cfg.after(cfg.ShutdownDelay):
		}
	}
	return s.shutdown(ctx, cfg.ShutdownTimeout)
}

// Runnable serves an extension with a controller-runtime manager, in every replica regardless of leader election:
//
//	err := manager.Add(x.Runnable(extension.FromEnv(os.Getenv)))
//
// Its metrics are in [Extension.Registry], not in the registry of controller-runtime, and are served according to
// [Config]. The manager's GracefulShutdownTimeout, by default 30 s, must be longer than the sum of ShutdownDelay and
// ShutdownTimeout.
func (x *Extension) Runnable(cfg Config) *Runnable { return &Runnable{x, cfg} }

// Runnable runs an extension in a controller-runtime manager; see [Extension.Runnable].
type Runnable struct {
	extension *Extension
	config    Config
}

// Start calls [Extension.Serve].
func (r *Runnable) Start(ctx context.Context) error { return r.extension.Serve(ctx, r.config) }

// NeedLeaderElection returns false, because every replica handles calls.
func (r *Runnable) NeedLeaderElection() bool { return false }

// servers are the servers and listeners of an extension.
type servers struct {
	hooks, metrics net.Listener // metrics: nil without a separate address
	running        []*http.Server
	ended          chan error // receives the error of a server that ends unexpectedly
	stopping       *atomic.Bool
}

// open listens on all addresses, or on none if there is an error.
func (x *Extension) open(ctx context.Context, cfg Config) (*servers, error) {
	secured, err := newSecurity(cfg)
	if err != nil {
		return nil, err
	}
	s := &servers{stopping: &atomic.Bool{}, ended: make(chan error, 2)}
	handler, err := x.endpoints(cfg, s.stopping)
	if err != nil {
		return nil, err
	}
	server := newServer(cfg, secured.only(handler))
	server.TLSConfig = secured.tls(cfg.TLSOptions)
	if p := server.TLSConfig.NextProtos; len(p) > 0 && !slices.Contains(p, "h2") {
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP1(true)
	}
	if cfg.MetricsAddress != "" {
		routes, err := x.metricsRoutes(cfg)
		if err != nil {
			return nil, err
		}
		if s.metrics, err = listen(ctx, cfg.MetricsAddress); err != nil {
			return nil, err
		}
		apart := newServer(cfg, routes)
		s.run(apart, func() error { return apart.Serve(s.metrics) })
	}
	if s.hooks, err = listen(ctx, cfg.Address); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.run(server, func() error { return server.ServeTLS(s.hooks, "", "") })
	return s, nil
}

func newServer(cfg Config, handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadTimeout: cfg.ReadTimeout, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
	}
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening at %s: %w", address, err)
	}
	return l, nil
}

func tellAddress(listening func(net.Addr), l net.Listener) {
	if listening != nil && l != nil {
		listening(l.Addr())
	}
}

// run serves in a goroutine until the server is shut down.
func (s *servers) run(server *http.Server, serve func() error) {
	s.running = append(s.running, server)
	go func() {
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			s.ended <- fmt.Errorf("serving: %w", err)
		}
	}()
}

// close closes all servers immediately.
func (s *servers) close() error {
	var problems []error
	for _, server := range s.running {
		problems = append(problems, server.Close())
	}
	return errors.Join(problems...)
}

// shutdown shuts down all servers when their calls have completed. The metrics are served until the end.
func (s *servers) shutdown(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	for _, server := range slices.Backward(s.running) {
		if err := server.Shutdown(ctx); err != nil {
			return errors.Join(fmt.Errorf("calls did not end within %s: %w", within, err), s.close())
		}
	}
	return nil
}

// only rejects callers without the required certificate, except for the health endpoints.
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

// tls returns the TLS configuration of the server: TLS 1.2 or later, unless the options change it.
func (s *security) tls(options []func(*tls.Config)) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate}
	if s.clients != nil {
		c.ClientAuth = tls.VerifyClientCertIfGiven
	}
	for _, option := range options {
		option(c)
	}
	if s.clients == nil || c.GetConfigForClient != nil {
		return c
	}
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := s.clients.get()
		if err != nil {
			return nil, err
		}
		own := c.Clone()
		own.GetConfigForClient, own.ClientCAs = nil, pool
		if len(own.NextProtos) == 0 {
			own.NextProtos = []string{"h2", "http/1.1"}
		}
		return own, nil
	}
	return c
}
