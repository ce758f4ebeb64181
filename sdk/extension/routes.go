package extension

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// endpoints returns the handler for the address of the hooks.
func (x *Extension) endpoints(cfg Config, stopping *atomic.Bool) (http.Handler, error) {
	inner := http.NewServeMux()
	inner.Handle("/", x.handler(cfg))
	if err := addRoutes(inner, cfg.Routes); err != nil {
		return nil, err
	}
	calls := http.Handler(inner)
	if cfg.Middleware != nil {
		calls = cfg.Middleware(inner)
	}
	mux := http.NewServeMux()
	mux.Handle("/", calls)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if stopping.Load() {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	if cfg.MetricsAddress == "" {
		mux.Handle("GET /metrics", x.metricsHandler())
	}
	return mux, nil
}

// metricsRoutes returns the handler for the metrics address.
func (x *Extension) metricsRoutes(cfg Config) (http.Handler, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", x.metricsHandler())
	return mux, addRoutes(mux, cfg.MetricsRoutes)
}

func (x *Extension) metricsHandler() http.Handler {
	return promhttp.HandlerFor(x.registry, promhttp.HandlerOpts{})
}

// addRoutes adds routes to a mux, and returns an error for an invalid one.
func addRoutes(mux *http.ServeMux, routes map[string]http.Handler) (err error) {
	at := ""
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the route %q cannot be served: %v", at, p)
		}
	}()
	for _, pattern := range slices.Sorted(maps.Keys(routes)) {
		at = pattern
		mux.Handle(pattern, routes[pattern])
	}
	return nil
}
